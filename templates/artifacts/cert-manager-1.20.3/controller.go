package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	config "github.com/cert-manager/cert-manager/internal/apis/config/controller"
	defaults "github.com/cert-manager/cert-manager/internal/apis/config/controller/v1alpha1"
	"github.com/cert-manager/cert-manager/internal/apis/config/controller/validation"
	"github.com/cert-manager/cert-manager/internal/controller/feature"
	"github.com/cert-manager/cert-manager/internal/pem"
	"github.com/cert-manager/cert-manager/pkg/controller"
	_ "github.com/cert-manager/cert-manager/pkg/controller/acmechallenges"
	_ "github.com/cert-manager/cert-manager/pkg/controller/acmeorders"
	gateways "github.com/cert-manager/cert-manager/pkg/controller/certificate-shim/gateways"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificate-shim/ingresses"
	listenersets "github.com/cert-manager/cert-manager/pkg/controller/certificate-shim/listenerset"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	_ "github.com/cert-manager/cert-manager/pkg/controller/clusterissuers"
	controllerfile "github.com/cert-manager/cert-manager/pkg/controller/configfile"
	_ "github.com/cert-manager/cert-manager/pkg/controller/issuers"
	"github.com/cert-manager/cert-manager/pkg/healthz"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/acme"
	dns "github.com/cert-manager/cert-manager/pkg/issuer/acme/dns/util"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/vault"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/venafi"
	logf "github.com/cert-manager/cert-manager/pkg/logs"
	utilfeature "github.com/cert-manager/cert-manager/pkg/util/feature"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

var errLostLease = errors.New("another controller leads")

func runController(ctx context.Context, configuration []byte) error {
	file := controllerfile.New()
	if err := file.DecodeAndConfigure(configuration); err != nil {
		return err
	}
	o := file.Config
	wrong := validation.ValidateControllerConfiguration(o, nil)
	if err := apply(o.FeatureGates, &o.Logging, wrong); err != nil {
		return err
	}
	limits := o.PEMSizeLimitsConfig
	pem.SetGlobalSizeLimits(pem.NewSizeLimitsFromConfig(
		limits.MaxCertificateSize, limits.MaxPrivateKeySize, limits.MaxChainLength, limits.MaxBundleSize))

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	factory, err := contexts(ctx, o)
	if err != nil {
		return err
	}
	base, err := factory.Build()
	if err != nil {
		return err
	}
	if err := serveMetrics(ctx, group, o, base); err != nil {
		return err
	}
	health, err := serveHealth(ctx, group, o)
	if err != nil {
		return err
	}

	leads := make(chan struct{})
	group.Go(func() error { return lead(ctx, o, factory, health, leads) })
	select {
	case <-ctx.Done():
		return group.Wait()
	case <-leads:
	}
	if err := start(ctx, group, o, factory, base); err != nil {
		cancel()
		return errors.Join(err, group.Wait())
	}
	return group.Wait()
}

// contexts makes what every controller gets.
func contexts(ctx context.Context, o *config.ControllerConfiguration) (*controller.ContextFactory, error) {
	nameservers := o.ACMEDNS01Config.RecursiveNameservers
	if len(nameservers) == 0 {
		nameservers = dns.RecursiveNameservers
	}
	solver := o.ACMEHTTP01Config
	var quantities [4]resource.Quantity
	for i, text := range []string{
		solver.SolverResourceRequestCPU, solver.SolverResourceRequestMemory,
		solver.SolverResourceLimitsCPU, solver.SolverResourceLimitsMemory,
	} {
		var err error
		if quantities[i], err = resource.ParseQuantity(text); err != nil {
			return nil, fmt.Errorf("acmeHTTP01Config: resources of the solver: %q: %w", text, err)
		}
	}
	return controller.NewContextFactory(ctx, controller.ContextOptions{
		Kubeconfig:         o.KubeConfig,
		KubernetesAPIQPS:   o.KubernetesAPIQPS,
		KubernetesAPIBurst: o.KubernetesAPIBurst,
		APIServerHost:      o.APIServerHost,
		Namespace:          o.Namespace,
		ACMEOptions: controller.ACMEOptions{
			HTTP01SolverResourceRequestCPU:    quantities[0],
			HTTP01SolverResourceRequestMemory: quantities[1],
			HTTP01SolverResourceLimitsCPU:     quantities[2],
			HTTP01SolverResourceLimitsMemory:  quantities[3],
			ACMEHTTP01SolverRunAsNonRoot:      solver.SolverRunAsNonRoot,
			HTTP01SolverImage:                 solver.SolverImage,
			HTTP01SolverNameservers:           solver.SolverNameservers,
			DNS01Nameservers:                  nameservers,
			DNS01CheckRetryPeriod:             o.ACMEDNS01Config.CheckRetryPeriod,
			DNS01CheckAuthoritative:           !o.ACMEDNS01Config.RecursiveNameserversOnly,
		},
		SchedulerOptions: controller.SchedulerOptions{MaxConcurrentChallenges: o.MaxConcurrentChallenges},
		IssuerOptions: controller.IssuerOptions{
			ClusterIssuerAmbientCredentials: o.ClusterIssuerAmbientCredentials,
			IssuerAmbientCredentials:        o.IssuerAmbientCredentials,
			ClusterResourceNamespace:        o.ClusterResourceNamespace,
		},
		IngressShimOptions: controller.IngressShimOptions{
			DefaultIssuerName:                 o.IngressShimConfig.DefaultIssuerName,
			DefaultIssuerKind:                 o.IngressShimConfig.DefaultIssuerKind,
			DefaultIssuerGroup:                o.IngressShimConfig.DefaultIssuerGroup,
			DefaultAutoCertificateAnnotations: o.IngressShimConfig.DefaultAutoCertificateAnnotations,
			ExtraCertificateAnnotations:       o.IngressShimConfig.ExtraCertificateAnnotations,
		},
		CertificateOptions: controller.CertificateOptions{
			EnableOwnerRef:                           o.EnableCertificateOwnerRef,
			CopiedAnnotationPrefixes:                 o.CopiedAnnotationPrefixes,
			CertificateRequestMinimumBackoffDuration: o.CertificateRequestMinimumBackoffDuration,
		},
		ConfigOptions: controller.ConfigOptions{
			EnableGatewayAPI:            o.EnableGatewayAPI,
			EnableGatewayAPIListenerSet: o.EnableGatewayAPIListenerSet,
		},
	})
}

// serveMetrics serves what Prometheus collects, also in a pod that does not lead.
func serveMetrics(ctx context.Context, group *errgroup.Group, o *config.ControllerConfiguration, base *controller.Context) error {
	base.Metrics.SetupACMECollector(base.SharedInformerFactory.Acme().V1().Challenges().Lister())
	kinds := base.SharedInformerFactory.Certmanager().V1()
	base.Metrics.SetupCertificateCollector(kinds.Certificates().Lister())
	base.Metrics.SetupIssuerCollector(kinds.Issuers().Lister())
	base.Metrics.SetupClusterIssuerCollector(kinds.ClusterIssuers().Lister())
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.MetricsListenAddress)
	if err != nil {
		return fmt.Errorf("metricsListenAddress %s: %w", o.MetricsListenAddress, err)
	}
	server := base.Metrics.NewServer(listener)
	group.Go(func() error {
		<-ctx.Done()
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		return server.Shutdown(end)
	})
	group.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	return nil
}

func serveHealth(ctx context.Context, group *errgroup.Group, o *config.ControllerConfiguration) (*healthz.Server, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.HealthzListenAddress)
	if err != nil {
		return nil, fmt.Errorf("healthzListenAddress %s: %w", o.HealthzListenAddress, err)
	}
	server := healthz.NewServer(o.LeaderElectionConfig.HealthzTimeout)
	group.Go(func() error { return server.Start(ctx, listener) })
	return server, nil
}

// lead closes leads once this controller is the one that acts, and is an error when it no longer is.
func lead(
	ctx context.Context, o *config.ControllerConfiguration, factory *controller.ContextFactory, health *healthz.Server,
	leads chan<- struct{},
) error {
	if !o.LeaderElectionConfig.Enabled {
		close(leads)
		return nil
	}
	own, err := factory.Build("leader-election")
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	lock, err := resourcelock.NewWithLabels(
		resourcelock.LeasesResourceLock, o.LeaderElectionConfig.Namespace, "cert-manager-controller",
		own.Client.CoreV1(), own.Client.CoordinationV1(),
		resourcelock.ResourceLockConfig{Identity: host + "-external-cert-manager-controller", EventRecorder: own.Recorder},
		labels)
	if err != nil {
		return err
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:            lock,
		LeaseDuration:   o.LeaderElectionConfig.LeaseDuration,
		RenewDeadline:   o.LeaderElectionConfig.RenewDeadline,
		RetryPeriod:     o.LeaderElectionConfig.RetryPeriod,
		ReleaseOnCancel: true,
		WatchDog:        health.LeaderHealthzAdaptor,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(leads) },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return err
	}
	elector.Run(ctx)
	if ctx.Err() == nil {
		return errLostLease
	}
	return nil
}

// start starts the controllers, then what tells them of changes.
func start(
	ctx context.Context, group *errgroup.Group, o *config.ControllerConfiguration, factory *controller.ContextFactory,
	base *controller.Context,
) error {
	enabled := enabledControllers(o)
	for name, build := range controller.Known() {
		if !enabled.Has(name) {
			continue
		}
		built, err := build(factory)
		if err != nil {
			return fmt.Errorf("controller %s: %w", name, err)
		}
		logf.FromContext(ctx).V(logf.InfoLevel).Info("starting controller", "controller", name)
		group.Go(func() error { return built.Run(o.NumberOfConcurrentWorkers, ctx) })
	}
	base.SharedInformerFactory.Start(ctx.Done())
	base.KubeSharedInformerFactory.Start(ctx.Done())
	base.HTTP01ResourceMetadataInformersFactory.Start(ctx.Done())
	if utilfeature.DefaultFeatureGate.Enabled(feature.ExperimentalGatewayAPISupport) && o.EnableGatewayAPI {
		base.GWShared.Start(ctx.Done())
	}
	return nil
}

func enabledControllers(o *config.ControllerConfiguration) sets.Set[string] {
	enabled, disabled := sets.New[string](), sets.New[string]()
	for _, name := range o.Controllers {
		switch off, isOff := strings.CutPrefix(name, "-"); {
		case name == "*":
			enabled.Insert(defaults.DefaultEnabledControllers...)
		case isOff:
			disabled.Insert(off)
		default:
			enabled.Insert(name)
		}
	}
	gates := utilfeature.DefaultFeatureGate
	if gates.Enabled(feature.ExperimentalCertificateSigningRequestControllers) {
		enabled.Insert(defaults.ExperimentalCertificateSigningRequestControllers...)
	}
	if o.EnableGatewayAPI && gates.Enabled(feature.ExperimentalGatewayAPISupport) {
		enabled.Insert(gateways.ControllerName)
	}
	if o.EnableGatewayAPI && o.EnableGatewayAPIListenerSet && gates.Enabled(feature.ListenerSets) {
		enabled.Insert(listenersets.ControllerName)
	}
	if o.Namespace != "" {
		enabled.Delete(defaults.ClusterScopedControllers...)
	}
	return enabled.Difference(disabled)
}
