// Package absent has the error of all that would speak to an authority.
package absent

import "errors"

// Err says what this build cannot do, and what can.
var Err = errors.New("this build of Traefik has no client for ACME: cert-manager obtains certificates")
