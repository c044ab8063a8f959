package main

import (
	"context"
	"fmt"
	"time"

	"github.com/cert-manager/cert-manager/internal/apis/config/cainjector/validation"
	cainjectorfile "github.com/cert-manager/cert-manager/pkg/cainjector/configfile"
	cmscheme "github.com/cert-manager/cert-manager/pkg/client/clientset/versioned/scheme"
	"github.com/cert-manager/cert-manager/pkg/controller/cainjector"
	logf "github.com/cert-manager/cert-manager/pkg/logs"
	"github.com/cert-manager/cert-manager/pkg/util"
	corev1 "k8s.io/api/core/v1"
	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	kscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	apireg "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func runCAInjector(ctx context.Context, configuration []byte) error {
	file := cainjectorfile.New()
	if err := file.DecodeAndConfigure(configuration); err != nil {
		return err
	}
	o := file.Config
	wrong := validation.ValidateCAInjectorConfiguration(o, nil)
	if err := apply(o.FeatureGates, &o.Logging, wrong); err != nil {
		return err
	}
	// Without it, what the controllers of controller-runtime say is lost.
	ctrl.SetLogger(logf.Log)
	connection, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		kscheme.AddToScheme, cmscheme.AddToScheme, apiext.AddToScheme, apireg.AddToScheme,
	} {
		utilruntime.Must(add(scheme))
	}
	var namespaces map[string]cache.Config
	if o.Namespace != "" {
		namespaces = map[string]cache.Config{o.Namespace: {}}
	}
	manager, err := ctrl.NewManager(util.RestConfigWithUserAgent(connection, "cainjector"), ctrl.Options{
		Scheme: scheme,
		Cache:  cache.Options{ReaderFailOnMissingInformer: true, DefaultNamespaces: namespaces},
		// The content of Secrets is read one at a time: a cluster's Secrets together may be large.
		Client:                        client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
		LeaderElection:                o.LeaderElectionConfig.Enabled,
		LeaderElectionNamespace:       o.LeaderElectionConfig.Namespace,
		LeaderElectionID:              "cert-manager-cainjector-leader-election",
		LeaderElectionReleaseOnCancel: true,
		LeaderElectionLabels:          labels,
		LeaderElectionResourceLock:    resourcelock.LeasesResourceLock,
		LeaseDuration:                 &o.LeaderElectionConfig.LeaseDuration,
		RenewDeadline:                 &o.LeaderElectionConfig.RenewDeadline,
		RetryPeriod:                   &o.LeaderElectionConfig.RetryPeriod,
		Metrics:                       metricsserver.Options{BindAddress: o.MetricsListenAddress},
	})
	if err != nil {
		return err
	}
	if o.EnableDataSourceConfig.Certificates {
		if err := waitForCertificates(ctx, manager); err != nil {
			return err
		}
	}
	into := o.EnableInjectableConfig
	if err := cainjector.RegisterAllInjectors(ctx, manager, cainjector.SetupOptions{
		Namespace:                    o.Namespace,
		EnableCertificatesDataSource: o.EnableDataSourceConfig.Certificates,
		EnabledReconcilersFor: map[string]bool{
			cainjector.MutatingWebhookConfigurationName:   into.MutatingWebhookConfigurations,
			cainjector.ValidatingWebhookConfigurationName: into.ValidatingWebhookConfigurations,
			cainjector.APIServiceName:                     into.APIServices,
			cainjector.CustomResourceDefinitionName:       into.CustomResourceDefinitions,
		},
	}); err != nil {
		return err
	}
	return manager.Start(ctx)
}

// waitForCertificates waits until the cluster knows the kind Certificate.
func waitForCertificates(ctx context.Context, manager ctrl.Manager) error {
	direct, err := client.New(manager.GetConfig(), client.Options{Scheme: manager.GetScheme(), Mapper: manager.GetRESTMapper()})
	if err != nil {
		return err
	}
	name := client.ObjectKey{Name: "certificates.cert-manager.io"}
	err = wait.PollUntilContextTimeout(ctx, time.Second, 5*time.Minute, true, func(ctx context.Context) (bool, error) {
		err := direct.Get(ctx, name, &apiext.CustomResourceDefinition{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("CustomResourceDefinition %s: %w", name.Name, err)
	}
	return nil
}
