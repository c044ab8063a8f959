// Package certificate has what Traefik asks an authority for.
package certificate

import "github.com/go-acme/lego/v5/certcrypto"

// Resource is a certificate.
type Resource struct {
	ID                      string
	Domains                 []string
	PrivateKey, Certificate []byte
}

// ObtainRequest is the wish for a certificate.
type ObtainRequest struct {
	Domains, EmailAddresses  []string
	Bundle, EnableCommonName bool
	Profile, PreferredChain  string
	KeyType                  certcrypto.KeyType
}

// RenewOptions is the wish for a certificate again.
type RenewOptions struct {
	EmailAddresses           []string
	Bundle, EnableCommonName bool
	Profile, PreferredChain  string
}
