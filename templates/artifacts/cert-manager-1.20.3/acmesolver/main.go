// Command acmesolver answers one HTTP-01 challenge, in a pod that cert-manager's controller makes. It is a program of its own
// because the Internet talks to it: it links nothing but the server of that answer.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/cert-manager/cert-manager/pkg/issuer/acme/http/solver"
	"github.com/go-logr/logr"
)

func main() {
	var s solver.HTTP01Solver
	flag.IntVar(&s.ListenPort, "listen-port", 8089, "port to listen on")
	flag.StringVar(&s.Domain, "domain", "", "domain that the challenge is for")
	flag.StringVar(&s.Token, "token", "", "token of the challenge")
	flag.StringVar(&s.Key, "key", "", "answer to the challenge")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		<-ctx.Done()
		end, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = s.Shutdown(end)
	}()
	if err := s.Listen(logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, nil))); !errors.Is(err, http.ErrServerClosed) {
		fmt.Fprintln(os.Stderr, "acmesolver:", err)
		os.Exit(1)
	}
	<-done
}
