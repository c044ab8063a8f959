// Package lego stands in for the client of ACME that Traefik links: it refuses to be made.
//
// The real one links the interfaces of some 180 DNS services, several of which the module proxy does not serve. In a cluster
// with more than one Traefik it is of no use either, since each would have certificates of its own. This module has what
// Traefik needs of it to compile, and speaks to no authority.
package lego

import (
	"context"
	"crypto/x509"
	"net/http"
	"time"

	"github.com/go-acme/lego/v5/acme"
	"github.com/go-acme/lego/v5/certificate"
	"github.com/go-acme/lego/v5/challenge"
	"github.com/go-acme/lego/v5/challenge/dns01"
	"github.com/go-acme/lego/v5/challenge/http01"
	"github.com/go-acme/lego/v5/challenge/tlsalpn01"
	"github.com/go-acme/lego/v5/lego/absent"
	"github.com/go-acme/lego/v5/registration"
)

// DirectoryURLLetsEncrypt names no authority.
const DirectoryURLLetsEncrypt = ""

// Config has no effect.
type Config struct {
	CADirURL, UserAgent string
	HTTPClient          *http.Client
	Certificate         struct{ Timeout time.Duration }
}

// Client is never made.
type Client struct {
	Certificate  certificates
	Challenge    challenges
	Registration registrations
}

type (
	certificates  struct{}
	challenges    struct{}
	registrations struct{}
)

// NewConfig takes an account.
func NewConfig(any) *Config { return &Config{} }

// NewClient refuses.
func NewClient(*Config) (*Client, error) { return nil, absent.Err }

// CreateCertPool refuses.
func CreateCertPool([]string, bool) (*x509.CertPool, error) { return nil, absent.Err }

func (certificates) Obtain(context.Context, certificate.ObtainRequest) (*certificate.Resource, error) {
	return nil, absent.Err
}

func (certificates) Renew(context.Context, certificate.Resource, *certificate.RenewOptions) (*certificate.Resource, error) {
	return nil, absent.Err
}

func (challenges) SetDNS01Provider(challenge.Provider, ...dns01.Option) error { return absent.Err }

func (challenges) SetHTTP01Provider(challenge.Provider, ...http01.Option) error { return absent.Err }

func (challenges) SetTLSALPN01Provider(challenge.Provider, ...tlsalpn01.Option) error {
	return absent.Err
}

func (registrations) Register(context.Context, registration.RegisterOptions) (*acme.ExtendedAccount, error) {
	return nil, absent.Err
}

func (registrations) RegisterWithExternalAccountBinding(context.Context, registration.RegisterEABOptions) (*acme.ExtendedAccount, error) {
	return nil, absent.Err
}
