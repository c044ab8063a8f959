//go:build tools

// Package artifacts names the command that turnup builds from the module above.
package artifacts

import (
	_ "github.com/prometheus/node_exporter"
)
