// kube-apiserver prints what kube-apiserver accepts.
package main

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
	v1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/apiserver/pkg/apis/apiserver/v1beta1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"turnup.invalid/artifacts/kubernetes/reference/describe"
)

func main() {
	files := runtime.NewScheme()
	install.Install(files)
	versions := []schema.GroupVersion{v1.SchemeGroupVersion, v1beta1.ConfigSchemeGroupVersion, v1beta1.SchemeGroupVersion}
	describe.Command(app.NewAPIServerCommand(), utilfeature.DefaultMutableFeatureGate).
		WithTypes(files, versions,
			"AdmissionConfiguration",
			"AuthenticationConfiguration",
			"AuthorizationConfiguration",
			"EgressSelectorConfiguration",
			"EncryptionConfiguration",
			"TracingConfiguration",
		).
		Print()
}
