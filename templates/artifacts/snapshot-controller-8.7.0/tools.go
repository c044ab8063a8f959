//go:build tools

// Package artifacts names the commands that turnup builds from the module above.
package artifacts

import (
	_ "github.com/kubernetes-csi/external-snapshotter/v8/cmd/snapshot-controller"
)
