// Package tlsalpn01 has the protocol of answers to an authority. Traefik offers it in every handshake, and has no answers.
package tlsalpn01

import (
	"time"

	"github.com/go-acme/lego/v5/lego/absent"
)

// ACMETLS1Protocol is the name of the protocol.
const ACMETLS1Protocol = "acme-tls/1"

// Option has no effect.
type Option struct{}

// SetDelay has no effect.
func SetDelay(time.Duration) Option { return Option{} }

// ChallengeBlocks refuses.
func ChallengeBlocks(_, _ string) ([]byte, []byte, error) { return nil, nil, absent.Err }
