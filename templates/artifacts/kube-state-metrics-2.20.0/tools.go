//go:build tools

// Package artifacts names the command that turnup builds from the module above.
package artifacts

import (
	_ "k8s.io/kube-state-metrics/v2"
)
