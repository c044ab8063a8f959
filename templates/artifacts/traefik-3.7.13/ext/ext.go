// Package ext adds nothing to what a user of Traefik can configure.
//
// Traefik has such a package in a module that is never released, so the module proxy does not serve it: a place for the fields
// of other editions. Traefik's own edition has none there.
package ext

// HTTP has no fields besides those of Traefik.
type HTTP struct{}

// Router has no fields besides those of Traefik.
type Router struct{}
