//go:build tools

// Package artifacts names the command of runc that turnup builds from the module above.
package artifacts

import (
	_ "github.com/opencontainers/runc"
)
