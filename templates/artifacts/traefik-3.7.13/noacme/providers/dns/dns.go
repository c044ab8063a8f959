// Package dns knows no DNS service.
package dns

import (
	"github.com/go-acme/lego/v5/challenge"
	"github.com/go-acme/lego/v5/lego/absent"
)

// NewDNSChallengeProviderByName refuses.
func NewDNSChallengeProviderByName(string) (challenge.Provider, error) { return nil, absent.Err }
