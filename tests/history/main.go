// What clients of etcd did and saw while its cluster was harmed, and whether one register for each
// key could have answered like that.
//
//	history record --endpoints A,B,C --ca FILE --cert FILE --key FILE >history.jsonl   until standard input ends
//	history check history.jsonl
//
// The checker is Porcupine. A write without an answer may have happened at any later time, or not
// at all; one whose value no client ever saw is left out, for then it made no difference.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

const (
	prefix = "turnup-history/"
	// Other keys after this time: the fewer operations on one key, the sooner it is judged.
	epoch   = 20 * time.Second
	keys    = 6
	clients = 6
	// A client asks again after this time.
	pause = 25 * time.Millisecond
	// How long a client waits for an answer.
	patience = 2 * time.Second
	// How long the last reads may take, of all keys, when nothing is harmed any more.
	lastReads = 2 * time.Minute
)

// operation is one line of a history. Times are nanoseconds since its beginning.
type operation struct {
	Client int    `json:"client"`
	Call   int64  `json:"call"`
	Return int64  `json:"return"`
	Key    string `json:"key"`
	// get, put, cas
	Kind string `json:"kind"`
	// What a cas expects, and what a put or cas writes.
	Old string `json:"old,omitempty"`
	New string `json:"new,omitempty"`
	// What a get or a cas that did not write found; empty where there was no key.
	Found string `json:"found,omitempty"`
	// Of a cas.
	Wrote bool `json:"wrote,omitempty"`
	// No answer came: nothing but Call is known of the times.
	Unknown bool `json:"unknown,omitempty"`
}

func main() {
	if len(os.Args) < 2 {
		fail("history record | history check FILE")
	}
	switch os.Args[1] {
	case "record":
		record(os.Args[2:])
	case "check":
		check(os.Args[2])
	default:
		fail("history record | history check FILE")
	}
}

func fail(words ...any) {
	fmt.Fprintln(os.Stderr, words...)
	os.Exit(2)
}

// recorder writes what clients did, a line each.
type recorder struct {
	start time.Time
	lock  sync.Mutex
	out   *json.Encoder
	// The keys that were written.
	seen map[string]bool
}

func (r *recorder) now() int64 { return time.Since(r.start).Nanoseconds() }

func (r *recorder) write(op operation) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.seen[op.Key] = true
	if err := r.out.Encode(op); err != nil {
		fail("cannot write the history:", err)
	}
}

func record(args []string) {
	flags := flag.NewFlagSet("record", flag.ExitOnError)
	endpoints := flags.String("endpoints", "", "URLs, separated by commas")
	ca := flags.String("ca", "", "file")
	cert := flags.String("cert", "", "file")
	key := flags.String("key", "", "file")
	_ = flags.Parse(args)

	buffered := bufio.NewWriter(os.Stdout)
	r := &recorder{start: time.Now(), out: json.NewEncoder(buffered), seen: map[string]bool{}}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	var group sync.WaitGroup
	for number := range clients {
		group.Add(1)
		go func() {
			defer group.Done()
			// Each begins with another endpoint.
			all := strings.Split(*endpoints, ",")
			first := number % len(all)
			client := connect(append(append([]string{}, all[first:]...), all[:first]...), *ca, *cert, *key)
			defer client.Close()
			r.run(ctx, client, number)
		}()
	}
	group.Wait()
	r.readAll(connect(strings.Split(*endpoints, ","), *ca, *cert, *key))
	if err := buffered.Flush(); err != nil {
		fail("cannot write the history:", err)
	}
}

func connect(endpoints []string, ca, cert, key string) *clientv3.Client {
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		fail(err)
	}
	pem, err := os.ReadFile(ca)
	if err != nil {
		fail(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	client, err := clientv3.New(clientv3.Config{
		Endpoints:            endpoints,
		DialKeepAliveTime:    2 * time.Second,
		DialKeepAliveTimeout: 2 * time.Second,
		TLS:                  &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: pool},
		Logger:               zap.NewNop(),
	})
	if err != nil {
		fail(err)
	}
	return client
}

// run gets, puts and compares until the end. Every value is written once.
func (r *recorder) run(ctx context.Context, client *clientv3.Client, number int) {
	random := rand.New(rand.NewSource(int64(number)))
	last := map[string]string{}
	for count := 0; ctx.Err() == nil; count++ {
		key := fmt.Sprintf("%s%05d/%d", prefix, time.Since(r.start)/epoch, random.Intn(keys))
		value := fmt.Sprintf("%d.%d", number, count)
		op := operation{Client: number, Key: key, Call: r.now()}
		switch random.Intn(4) {
		case 0:
			op.Kind, op.New = "put", value
		case 1:
			op.Kind, op.Old, op.New = "cas", last[key], value
		default:
			op.Kind = "get"
		}
		r.do(client, &op)
		if !op.Unknown {
			last[key] = op.Found
			if op.Kind == "put" || op.Wrote {
				last[key] = op.New
			}
		}
		time.Sleep(pause)
	}
}

// do asks, and records what came of it.
func (r *recorder) do(client *clientv3.Client, op *operation) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var err error
	switch op.Kind {
	case "get":
		var got *clientv3.GetResponse
		if got, err = client.Get(ctx, op.Key); err == nil && len(got.Kvs) > 0 {
			op.Found = string(got.Kvs[0].Value)
		}
	case "put":
		_, err = client.Put(ctx, op.Key, op.New)
	case "cas":
		expected := clientv3.Compare(clientv3.Value(op.Key), "=", op.Old)
		if op.Old == "" {
			expected = clientv3.Compare(clientv3.CreateRevision(op.Key), "=", 0)
		}
		var done *clientv3.TxnResponse
		done, err = client.Txn(ctx).If(expected).Then(clientv3.OpPut(op.Key, op.New)).Else(clientv3.OpGet(op.Key)).Commit()
		if err == nil {
			op.Wrote = done.Succeeded
			if !op.Wrote {
				if found := done.Responses[0].GetResponseRange().Kvs; len(found) > 0 {
					op.Found = string(found[0].Value)
				}
			}
		}
	}
	op.Return = r.now()
	op.Unknown = err != nil
	// A read without an answer changed nothing.
	if !op.Unknown || op.Kind != "get" {
		r.write(*op)
	}
}

// readAll reads every key once more: what was acknowledged is there to the end.
func (r *recorder) readAll(client *clientv3.Client) {
	defer client.Close()
	deadline := time.Now().Add(lastReads)
	var all []string
	for key := range r.seen {
		all = append(all, key)
	}
	sort.Strings(all)
	for _, key := range all {
		for {
			op := operation{Client: clients, Key: key, Kind: "get", Call: r.now()}
			r.do(client, &op)
			if !op.Unknown {
				break
			}
			if time.Now().After(deadline) {
				fail("etcd does not answer at the end")
			}
		}
	}
}

func check(path string) {
	file, err := os.Open(path)
	if err != nil {
		fail(err)
	}
	defer file.Close()
	var all []operation
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var op operation
		if err := json.Unmarshal(lines.Bytes(), &op); err != nil {
			fail(path, err)
		}
		all = append(all, op)
	}
	if err := lines.Err(); err != nil {
		fail(path, err)
	}
	judge(all)
}

// judge prints what the history was, and ends with 1 where no register could have answered so.
func judge(all []operation) {
	found := map[string]bool{}
	for _, op := range all {
		found[op.Key+" "+op.Found] = true
		if op.Kind == "cas" && op.Wrote {
			found[op.Key+" "+op.Old] = true
		}
	}
	byKey := map[string][]porcupine.Operation{}
	acknowledged, unknown := 0, 0
	for _, op := range all {
		if op.Unknown {
			unknown++
			if !found[op.Key+" "+op.New] {
				continue
			}
			op.Return = math.MaxInt64
		} else if op.Kind == "put" || op.Wrote {
			acknowledged++
		}
		byKey[op.Key] = append(byKey[op.Key], porcupine.Operation{ClientId: op.Client, Input: op, Call: op.Call, Output: op, Return: op.Return})
	}
	var wrong []string
	for key, operations := range byKey {
		switch porcupine.CheckOperationsTimeout(register, operations, time.Minute) {
		case porcupine.Illegal:
			wrong = append(wrong, key+": no register could have answered so")
		case porcupine.Unknown:
			wrong = append(wrong, key+": not judged within a minute")
		}
	}
	fmt.Printf("%d operations on %d keys: %d writes acknowledged, %d without an answer; %d keys wrong\n", len(all), len(byKey), acknowledged, unknown, len(wrong))
	sort.Strings(wrong)
	for _, line := range wrong {
		fmt.Println(line)
	}
	if len(wrong) > 0 {
		os.Exit(1)
	}
}

// register is one key; its state is the value, empty where there is none.
var register = porcupine.Model{
	Init: func() any { return "" },
	Step: func(state, input, output any) (bool, any) {
		value, op := state.(string), input.(operation)
		switch {
		case op.Kind == "get":
			return value == op.Found, value
		case op.Kind == "put":
			return true, op.New
		case op.Unknown:
			// It wrote, for its value was found.
			return value == op.Old, op.New
		case op.Wrote:
			return value == op.Old, op.New
		default:
			return value == op.Found && value != op.Old, value
		}
	},
}
