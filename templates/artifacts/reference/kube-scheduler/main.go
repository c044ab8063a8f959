// kube-scheduler prints what kube-scheduler accepts.
package main

import (
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	v1 "k8s.io/kube-scheduler/config/v1"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"turnup.invalid/artifacts/kubernetes/reference/describe"
)

func main() {
	describe.Command(app.NewSchedulerCommand(), utilfeature.DefaultMutableFeatureGate).
		WithDefaults(scheme.Scheme, v1.SchemeGroupVersion.WithKind("KubeSchedulerConfiguration")).
		Print()
}
