//go:build tools

// Package artifacts names the command of cloud-provider-aws that turnup builds from the module above.
package artifacts

import (
	_ "k8s.io/cloud-provider-aws/cmd/aws-cloud-controller-manager"
)
