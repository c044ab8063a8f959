// Command flanneld runs flannel's own subnet manager, backends and traffic manager on a node of Kubernetes.
//
// flannel's main package imports every backend, one of which needs a cloud SDK that the module proxy does not serve. This
// program links host-gw and vxlan only, speaks nftables only, and also writes the CNI configuration of the node's bridge,
// which flannel leaves to a plugin in a module that the proxy does not serve either. It takes no configuration from etcd.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/flannel-io/flannel/pkg/backend"
	_ "github.com/flannel-io/flannel/pkg/backend/hostgw"
	_ "github.com/flannel-io/flannel/pkg/backend/vxlan"
	"github.com/flannel-io/flannel/pkg/ip"
	"github.com/flannel-io/flannel/pkg/ipmatch"
	"github.com/flannel-io/flannel/pkg/subnet/kube"
	"github.com/flannel-io/flannel/pkg/trafficmngr/nftables"
	"sigs.k8s.io/knftables"
)

// Seconds between two looks at the nftables rules.
const resyncSeconds = 30

type options struct {
	kubeconfig, netConf, cniConf, iface, health, noMasquerade string
	mtu                                                       int
}

func main() {
	var o options
	flag.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file; empty: the pod's service account")
	flag.StringVar(&o.netConf, "net-conf", "/etc/kube-flannel/net-conf.json", "flannel's network configuration")
	flag.StringVar(&o.cniConf, "cni-conf", "/etc/cni/net.d/10-flannel.conflist", "CNI configuration to write")
	flag.StringVar(&o.iface, "iface", "", "address or name of the interface to other hosts; empty: the default route's")
	flag.StringVar(&o.health, "health", "127.0.0.1:9251", "address of /healthz")
	flag.StringVar(&o.noMasquerade, "no-masquerade", "", "IPv4 networks, separated by commas, to which pods keep their own addresses")
	flag.IntVar(&o.mtu, "mtu", 0, "MTU of pods; 0: what the backend allows")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "flanneld:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	subnets, err := kube.NewSubnetManager(ctx, "", o.kubeconfig, "flannel.alpha.coreos.com", o.netConf, true)
	if err != nil {
		return fmt.Errorf("subnet manager: %w", err)
	}
	config, err := subnets.GetNetworkConfig(ctx)
	if err != nil {
		return fmt.Errorf("network configuration %s: %w", o.netConf, err)
	}
	family, err := ipmatch.GetIPFamily(config.EnableIPv4, config.EnableIPv6)
	if err != nil {
		return err
	}
	device, err := ipmatch.LookupExtIface(o.iface, "", "", family, ipmatch.PublicIPOpts{})
	if err != nil {
		return fmt.Errorf("interface %q: %w", o.iface, err)
	}

	var group sync.WaitGroup
	kind, err := backend.NewManager(ctx, subnets, device).GetBackend(config.BackendType)
	if err != nil {
		return fmt.Errorf("backend %s: %w", config.BackendType, err)
	}
	network, err := kind.RegisterNetwork(ctx, &group, config)
	if err != nil {
		return fmt.Errorf("register network: %w", err)
	}
	lease := network.Lease()

	rules := &nftables.NFTablesManager{}
	if err := rules.Init(ctx); err != nil {
		return fmt.Errorf("nftables: %w", err)
	}
	// The rules are made again from the lease, so there is no earlier subnet to take away.
	if err := rules.SetupAndEnsureMasqRules(ctx, config.Network, ip.IP4Net{}, ip.IP4Net{}, config.IPv6Network,
		ip.IP6Net{}, ip.IP6Net{}, lease, resyncSeconds, false); err != nil {
		return fmt.Errorf("masquerade rules: %w", err)
	}
	if err := keepAddresses(ctx, config.Network, o.noMasquerade); err != nil {
		return fmt.Errorf("networks without masquerading: %w", err)
	}
	rules.SetupAndEnsureForwardRules(ctx, config.Network, config.IPv6Network, resyncSeconds)

	group.Go(func() { network.Run(ctx) })
	// Only now can a pod of this node reach the others, so only now may kubelet find a network.
	mtu := network.MTU()
	if o.mtu > 0 {
		mtu = o.mtu
	}
	if err := writeConf(o.cniConf, lease.Subnet.String(), mtu); err != nil {
		return err
	}
	if err := subnets.CompleteLease(ctx, lease, &group); err != nil && ctx.Err() == nil {
		return fmt.Errorf("lease: %w", err)
	}
	if err := serveHealth(ctx, o.health); err != nil {
		return err
	}
	group.Wait()
	return nil
}

// keepAddresses puts a rule before flannel's own, which it makes again at each start: connections to these networks leave its
// chain before it masquerades them.
func keepAddresses(ctx context.Context, pods ip.IP4Net, networks string) error {
	if networks == "" {
		return nil
	}
	nft, err := knftables.New(knftables.IPv4Family, "flannel-ipv4")
	if err != nil {
		return err
	}
	tx := nft.NewTransaction()
	tx.Insert(&knftables.Rule{
		Chain: "postrtg",
		Rule: knftables.Concat("ip saddr", pods.String(), "ip daddr", "{", strings.ReplaceAll(networks, ",", ", "), "}",
			"return"),
	})
	return nft.Run(ctx, tx)
}

func serveHealth(ctx context.Context, address string) error {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
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

// writeConf puts the bridge's configuration in place in one rename: kubelet reads the folder at any moment.
func writeConf(path, subnet string, mtu int) error {
	conf := map[string]any{
		"cniVersion": "1.0.0",
		"name":       "turnup",
		"plugins": []map[string]any{
			{
				"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false, "hairpinMode": true, "mtu": mtu,
				"ipam": map[string]any{
					"type":   "host-local",
					"ranges": [][]map[string]string{{{"subnet": subnet}}},
					"routes": []map[string]string{{"dst": "0.0.0.0/0"}},
				},
			},
			{"type": "portmap", "backend": "nftables", "capabilities": map[string]bool{"portMappings": true}},
		},
	}
	text, err := json.MarshalIndent(conf, "", "  ")
	if err != nil {
		return err
	}
	temporary := filepath.Join(filepath.Dir(path), ".turnup-conflist")
	if err := os.WriteFile(temporary, append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}
