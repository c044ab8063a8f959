// kube-proxy prints what kube-proxy accepts.
package main

import (
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kube-proxy/config/v1alpha1"
	"k8s.io/kubernetes/cmd/kube-proxy/app"
	"k8s.io/kubernetes/pkg/proxy/apis/config/scheme"
	"turnup.invalid/artifacts/kubernetes/reference/describe"
)

func main() {
	describe.Command(app.NewProxyCommand(), utilfeature.DefaultMutableFeatureGate).
		WithDefaults(scheme.Scheme, v1alpha1.SchemeGroupVersion.WithKind("KubeProxyConfiguration")).
		Print()
}
