//go:build tools

// Package artifacts names the command of cri-tools that turnup builds from the module above.
package artifacts

import (
	_ "sigs.k8s.io/cri-tools/cmd/crictl"
)
