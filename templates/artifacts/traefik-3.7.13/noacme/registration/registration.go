// Package registration has what Traefik tells an authority of itself.
package registration

// RegisterOptions is for a new account.
type RegisterOptions struct{ TermsOfServiceAgreed bool }

// RegisterEABOptions is for a new account that belongs to another one.
type RegisterEABOptions struct {
	TermsOfServiceAgreed bool
	Kid, HmacEncoded     string
}
