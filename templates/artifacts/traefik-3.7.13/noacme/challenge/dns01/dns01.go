// Package dns01 has the names of domains, and options without effect.
package dns01

import (
	"strings"
	"time"
)

// Option has no effect.
type Option struct{}

// Options has no effect.
type Options struct{ RecursiveNameservers []string }

// Client does nothing.
type Client struct{}

// NewClient makes a client that does nothing.
func NewClient(*Options) *Client { return &Client{} }

// SetDefaultClient has no effect.
func SetDefaultClient(*Client) {}

// CondOptions has no effect.
func CondOptions(bool, ...Option) Option { return Option{} }

// DisableAuthoritativeNssPropagationRequirement has no effect.
func DisableAuthoritativeNssPropagationRequirement() Option { return Option{} }

// DisableRecursiveNSsPropagationRequirement has no effect.
func DisableRecursiveNSsPropagationRequirement() Option { return Option{} }

// PropagationWait has no effect.
func PropagationWait(time.Duration, bool) Option { return Option{} }

// UnFqdn is a name without the dot at its end.
func UnFqdn(name string) string { return strings.TrimSuffix(name, ".") }
