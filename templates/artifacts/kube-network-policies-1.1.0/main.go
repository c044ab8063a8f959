// Command kube-network-policies enforces NetworkPolicies on a node of Kubernetes: rules of nftables hand the first packet of
// each connection of a pod that a policy selects to this program, and SIGs' kube-network-policies judges it.
//
// What is of its own here is the way to the kernel (dataplane.go). The upstream program needs the kernel's nft_queue, which
// kernels without modules may lack; its table stays when it ends, also where the addon was taken away; and it has no probe.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/kube-network-policies/pkg/api"
	"sigs.k8s.io/kube-network-policies/pkg/networkpolicy"
	"sigs.k8s.io/kube-network-policies/pkg/podinfo"
)

// How long the API server may take to say at the end whether the addon is still wanted.
const askAtEnd = 5 * time.Second

func main() {
	klog.InitFlags(nil)
	node := flag.String("node", "", "name of this node")
	health := flag.String("health", "127.0.0.1:9252", "address of /healthz")
	workload := flag.String("daemonset", "kube-network-policies", "the DaemonSet whose pod this is; without it the rules go")
	namespace := flag.String("namespace", "kube-system", "its namespace")
	failOpen := flag.Bool("fail-open", false, "let new connections through while this program does not answer")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	client, err := connect()
	if err == nil {
		err = run(ctx, client, *node, *health, *failOpen)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "kube-network-policies:", err)
		os.Exit(1)
	}
	if isWanted(client, *namespace, *workload) {
		return // The next pod finds the rules in place: no connection slips through in between.
	}
	klog.Info("the addon is gone: its rules go, too")
	if err := removeTable(); err != nil {
		fmt.Fprintln(os.Stderr, "kube-network-policies:", err)
		os.Exit(1)
	}
}

func connect() (*kubernetes.Clientset, error) {
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, err
	}
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	config.ContentType = "application/vnd.kubernetes.protobuf"
	return kubernetes.NewForConfig(config)
}

func run(ctx context.Context, client *kubernetes.Clientset, node, health string, failOpen bool) error {
	if node == "" {
		return errors.New("--node is empty: the name of the Node is needed")
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(func(object any) (any, error) {
		if accessor, err := meta.Accessor(object); err == nil {
			accessor.SetManagedFields(nil)
		}
		return object, nil
	}))
	pods, namespaces := factory.Core().V1().Pods(), factory.Core().V1().Namespaces()
	byIP, err := podinfo.NewInformerResolver(pods.Informer())
	if err != nil {
		return err
	}
	policies := networkpolicy.NewStandardNetworkPolicy(node, namespaces, pods, factory.Networking().V1().NetworkPolicies())
	provider := podinfo.NewInformerProvider(pods, namespaces, nil, []podinfo.IPResolver{byIP})
	engine := networkpolicy.NewPolicyEngine(provider, []api.PolicyEvaluator{policies})
	plane := newDataplane(engine, failOpen)

	factory.Start(ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced && ctx.Err() == nil {
			return fmt.Errorf("the API server did not list %v", kind)
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	ended := make(chan error, 2)
	go func() { ended <- plane.run(ctx) }()
	go func() { ended <- serveHealth(ctx, health, plane) }()
	return <-ended
}

// serveHealth answers with 200 once the rules are in place, and while they can be renewed.
func serveHealth(ctx context.Context, address string, plane *dataplane) error {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		if why := plane.failure(); why != nil {
			http.Error(w, why.Error(), http.StatusServiceUnavailable)
		}
	})
	server := &http.Server{Addr: address, Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("health: %w", err)
	}
	return nil
}

// isWanted tells the end of this pod from the end of the addon. With the addon goes its account, so a refusal means the same as
// its absence. An API server that does not answer leaves the rules alone.
func isWanted(client *kubernetes.Clientset, namespace, workload string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), askAtEnd)
	defer cancel()
	found, err := client.AppsV1().DaemonSets(namespace).Get(ctx, workload, metav1.GetOptions{})
	if err == nil {
		return found.DeletionTimestamp == nil
	}
	klog.Infof("asked for DaemonSet %s/%s: %v", namespace, workload, err)
	return !apierrors.IsNotFound(err) && !apierrors.IsUnauthorized(err) && !apierrors.IsForbidden(err)
}
