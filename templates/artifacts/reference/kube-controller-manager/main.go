// kube-controller-manager prints what kube-controller-manager accepts.
package main

import (
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"turnup.invalid/artifacts/kubernetes/reference/describe"
)

func main() {
	describe.Command(app.NewControllerManagerCommand(), utilfeature.DefaultMutableFeatureGate).Print()
}
