// Package acme has the accounts that Traefik stores.
package acme

// Account is what an authority knows of an account.
type Account struct{}

// ExtendedAccount is an account and its place.
type ExtendedAccount struct {
	Account
	Location string
}
