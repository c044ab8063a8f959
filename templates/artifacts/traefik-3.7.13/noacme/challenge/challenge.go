// Package challenge has what answers an authority.
package challenge

import "context"

// Provider answers an authority.
type Provider interface {
	Present(ctx context.Context, domain, token, keyAuth string) error
	CleanUp(ctx context.Context, domain, token, keyAuth string) error
}
