// Package http01 has the path of answers to an authority, which no one asks for.
package http01

import "time"

// PathPrefix is where an authority asks.
const PathPrefix = "/.well-known/acme-challenge/"

// Option has no effect.
type Option struct{}

// SetDelay has no effect.
func SetDelay(time.Duration) Option { return Option{} }
