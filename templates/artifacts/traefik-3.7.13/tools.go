//go:build tools

// Package artifacts names the commands that turnup builds from the module above.
package artifacts

import (
	_ "github.com/traefik/traefik/v3/cmd/traefik"
)
