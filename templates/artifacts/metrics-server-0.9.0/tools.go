//go:build tools

// Package artifacts names the commands that turnup builds from the module above.
package artifacts

import (
	_ "sigs.k8s.io/metrics-server/cmd/metrics-server"
)
