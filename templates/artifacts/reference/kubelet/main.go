// kubelet prints what the kubelet accepts.
package main

import (
	"os"

	"github.com/spf13/pflag"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubelet/config/v1beta1"
	// Registers the gates of all that the program has.
	_ "k8s.io/kubernetes/cmd/kubelet/app"
	"k8s.io/kubernetes/cmd/kubelet/app/options"
	"k8s.io/kubernetes/pkg/kubelet/apis/config/scheme"
	"turnup.invalid/artifacts/kubernetes/reference/describe"
)

func main() {
	files, _, err := scheme.NewSchemeAndCodecs()
	if err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
	configuration, err := options.NewKubeletConfiguration()
	if err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
	// The kubelet's command keeps its flags to itself.
	flags := pflag.NewFlagSet("kubelet", pflag.ContinueOnError)
	options.NewKubeletFlags().AddFlags(flags)
	options.AddKubeletConfigFlags(flags, configuration)
	options.AddGlobalFlags(flags)
	describe.New(flags, utilfeature.DefaultMutableFeatureGate).
		WithDefaults(files, v1beta1.SchemeGroupVersion.WithKind("KubeletConfiguration")).
		Print()
}
