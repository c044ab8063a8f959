//go:build tools

// Package artifacts names the commands that turnup builds from the module above.
package artifacts

import (
	_ "go.etcd.io/etcd/server/v3"
	_ "go.etcd.io/etcd/etcdctl/v3"
	_ "go.etcd.io/etcd/etcdutl/v3"
)
