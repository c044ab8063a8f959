//go:build tools

package main

// The command that turnup builds from the module above, beside the helper here.
import (
	_ "github.com/rancher/local-path-provisioner"
)
