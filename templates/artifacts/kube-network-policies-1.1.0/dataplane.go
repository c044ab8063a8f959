package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	nfqueue "github.com/florianl/go-nfqueue/v2"
	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/xt"
	mdlayher "github.com/mdlayher/netlink"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"
	upstream "sigs.k8s.io/kube-network-policies/pkg/dataplane"
	"sigs.k8s.io/kube-network-policies/pkg/network"
	"sigs.k8s.io/kube-network-policies/pkg/networkpolicy"
)

const (
	tableName = "kube-network-policies"
	setName   = "selected-pods"
	queueID   = 98
	// The bit of a connection's labels that says: judged, and let through.
	acceptedBit = 100
	// Changes within this time make one change of the rules; established connections are judged again less often.
	syncEvery, judgeEvery = time.Second, 5 * time.Second
	// Also with no change, against rules that others took away.
	resync = time.Minute
)

// dataplane keeps the rules of this node as the policies want them, and answers for the packets that they hand over.
type dataplane struct {
	engine   *networkpolicy.PolicyEngine
	failOpen bool
	// The kernel has no expression `queue`: its older form, a target of xtables, does the same.
	oldForm bool
	changed chan struct{}
	mutex   sync.Mutex
	why     error
}

func newDataplane(engine *networkpolicy.PolicyEngine, failOpen bool) *dataplane {
	plane := &dataplane{engine: engine, failOpen: failOpen, changed: make(chan struct{}, 1), why: errors.New("no rules yet")}
	engine.SetDataplaneSyncCallbacks(func() {
		select {
		case plane.changed <- struct{}{}:
		default:
		}
	})
	return plane
}

func (d *dataplane) failure() error {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return d.why
}

// run listens before there are rules, so that none leads to an empty queue.
func (d *dataplane) run(ctx context.Context) error {
	var flags uint32 = nfqueue.NfQaCfgFlagGSO
	if d.failOpen {
		flags |= nfqueue.NfQaCfgFlagFailOpen
	}
	queue, err := nfqueue.Open(&nfqueue.Config{NfQueue: queueID, Flags: flags, MaxPacketLen: 128, MaxQueueLen: 1024,
		Copymode: nfqueue.NfQnlCopyPacket, WriteTimeout: 100 * time.Millisecond})
	if err != nil {
		return fmt.Errorf("the kernel's queue of packets: %w; modprobe nfnetlink_queue", err)
	}
	defer queue.Close()
	judge := func(packet nfqueue.Attribute) int { return d.judge(ctx, queue, packet) }
	failed := func(err error) int {
		var operation *mdlayher.OpError
		if !errors.As(err, &operation) || !operation.Timeout() && !operation.Temporary() {
			klog.Infof("queue of packets: %v", err)
		}
		return 0
	}
	if err := queue.RegisterWithErrorFunc(ctx, judge, failed); err != nil {
		return fmt.Errorf("the kernel's queue of packets: %w", err)
	}
	if err := d.sync(ctx); err != nil {
		return fmt.Errorf("rules of nftables: %w", err)
	}
	ticker := time.NewTicker(resync)
	defer ticker.Stop()
	judged := time.Now()
	for {
		var later <-chan time.Time
		select {
		case <-ctx.Done():
			return nil
		case <-d.changed:
			later = time.After(syncEvery)
		case <-ticker.C:
			later = time.After(0)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-later:
		}
		err := d.sync(ctx)
		if err == nil {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(judgeEvery - time.Since(judged)):
			}
			err = d.judgeAgain(ctx)
			judged = time.Now()
		}
		if err != nil {
			klog.Errorf("rules: %v", err)
			d.retry()
		}
	}
}

func (d *dataplane) retry() {
	select {
	case d.changed <- struct{}{}:
	default:
	}
}

// judge is asked about the first packet of a connection, in each direction.
func (d *dataplane) judge(ctx context.Context, queue *nfqueue.Nfqueue, asked nfqueue.Attribute) int {
	accepted := d.failOpen
	packet, err := network.ParsePacket(*asked.Payload)
	if err == nil {
		packet.ID = *asked.PacketID
		accepted, err = d.engine.EvaluatePacket(ctx, &packet)
	}
	if err != nil {
		accepted = d.failOpen
		klog.Errorf("a packet that cannot be judged (let through: %t): %v", accepted, err)
	}
	if accepted {
		err = queue.SetVerdictWithOption(*asked.PacketID, nfqueue.NfAccept, nfqueue.WithLabel(label()))
	} else {
		err = queue.SetVerdict(*asked.PacketID, nfqueue.NfDrop)
	}
	if err != nil {
		klog.Errorf("verdict: %v", err)
	}
	return 0
}

// judgeAgain takes the label from connections that policies no longer allow: their next packet is judged like a first one.
func (d *dataplane) judgeAgain(ctx context.Context) error {
	selected, err := d.selected(ctx)
	if err != nil {
		return err
	}
	flows, err := netlink.ConntrackTableList(netlink.ConntrackTable, unix.AF_INET)
	if err != nil {
		return fmt.Errorf("connections: %w", err)
	}
	var failures []error
	for _, flow := range flows {
		if tcp, ok := flow.ProtoInfo.(*netlink.ProtoInfoTCP); ok && tcp.State != nl.TCP_CONNTRACK_ESTABLISHED {
			continue
		}
		protocol := flow.Forward.Protocol
		isJudged := protocol == unix.IPPROTO_TCP || protocol == unix.IPPROTO_UDP || protocol == unix.IPPROTO_SCTP
		if !isJudged || !selected[flow.Forward.SrcIP.String()] && !selected[flow.Reverse.SrcIP.String()] {
			continue
		}
		packet := upstream.PacketFromFlow(flow)
		if packet == nil {
			continue
		}
		if allowed, err := d.engine.EvaluatePacket(ctx, packet); err != nil || allowed {
			continue
		}
		flow.Labels = make([]byte, len(label()))
		if err := netlink.ConntrackUpdate(netlink.ConntrackTable, unix.AF_INET, flow); err != nil && !errors.Is(err, unix.ENOENT) {
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}

// selected are the addresses of this node's pods that a policy selects.
func (d *dataplane) selected(ctx context.Context) (map[string]bool, error) {
	addresses, _, err := d.engine.GetManagedIPs(ctx)
	found := map[string]bool{}
	for _, address := range addresses {
		if address.Is4() {
			found[address.String()] = true
		}
	}
	return found, err
}

// sync replaces the table, in one transaction. A kernel says in it whether it has the expression `queue`.
func (d *dataplane) sync(ctx context.Context) error {
	addresses, _, err := d.engine.GetManagedIPs(ctx)
	if err == nil {
		var elements []nftables.SetElement
		for _, address := range addresses {
			if address.Is4() {
				elements = append(elements, nftables.SetElement{Key: address.AsSlice()})
			}
		}
		if err = d.load(elements); err != nil && !d.oldForm {
			d.oldForm = true
			if oldErr := d.load(elements); oldErr != nil {
				d.oldForm = false
				err = fmt.Errorf("%w; as a target of xtables: %w; modprobe nft_queue, or modprobe xt_NFQUEUE", err, oldErr)
			} else {
				klog.Infof("the kernel has no nft_queue (%v): rules with NFQUEUE of xtables", err)
				err = nil
			}
		}
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.why = err
	return err
}

func (d *dataplane) load(elements []nftables.SetElement) error {
	nft, err := nftables.New()
	if err != nil {
		return err
	}
	table := &nftables.Table{Name: tableName, Family: nftables.TableFamilyIPv4}
	nft.AddTable(table)
	nft.DelTable(table)
	nft.AddTable(table)
	set := &nftables.Set{Table: table, Name: setName, KeyType: nftables.TypeIPAddr}
	if err := nft.AddSet(set, elements); err != nil {
		return err
	}
	chain := func(name string, hook *nftables.ChainHook, priority nftables.ChainPriority) *nftables.Chain {
		return nft.AddChain(&nftables.Chain{Name: name, Table: table, Type: nftables.ChainTypeFilter, Hooknum: hook, Priority: &priority})
	}
	add := func(chain *nftables.Chain, parts ...[]expr.Any) {
		var all []expr.Any
		for _, part := range parts {
			all = append(all, part...)
		}
		nft.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: all})
	}
	accept := []expr.Any{&expr.Verdict{Kind: expr.VerdictAccept}}
	source, destination := inSet(set, 12), inSet(set, 16)

	// A question to the DNS is judged here, once it is addressed to a pod: two at once from one port race in the kernel
	// while they wait for a verdict later on (bugzilla.netfilter.org 1766).
	dns := chain("dns", nftables.ChainHookPrerouting, *nftables.ChainPriorityNATDest+5)
	add(dns, toDNS(), source, d.queue())
	add(dns, toDNS(), destination, d.queue())

	// Behind every change of the destination, and before any of the source: the policies see who speaks with whom.
	forward := chain("postrouting", nftables.ChainHookPostrouting, *nftables.ChainPriorityNATSource-5)
	add(forward, toDNS(), accept)
	// kubelet's probes, and what else root of this host asks pods.
	add(forward, []expr.Any{&expr.Meta{Key: expr.MetaKeySKUID, Register: 1}, equals(make([]byte, 4))}, accept)
	add(forward, labelled(), state(expr.CtStateBitESTABLISHED|expr.CtStateBitRELATED), accept)
	add(forward, source, d.queue())
	add(forward, destination, d.queue())
	// It is never reached with a verdict; the kernel keeps room for labels only where a rule sets one.
	add(forward, []expr.Any{&expr.Immediate{Register: 1, Data: label()},
		&expr.Ct{Register: 1, SourceRegister: true, Key: expr.CtKeyLABELS}})

	// What pods of this node ask the node itself.
	input := chain("input", nftables.ChainHookInput, *nftables.ChainPriorityNATSource+1)
	add(input, []expr.Any{&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: 1}, equals(append([]byte("lo"), make([]byte, 14)...))}, accept)
	add(input, source, state(expr.CtStateBitNEW), d.queue())
	return nft.Flush()
}

// queue hands the packet over; with fail-open it goes on where this program does not listen.
func (d *dataplane) queue() []expr.Any {
	if !d.oldForm {
		queue := &expr.Queue{Num: queueID}
		if d.failOpen {
			queue.Flag = expr.QueueFlagBypass
		}
		return []expr.Any{queue}
	}
	// struct xt_NFQ_info_v3: queue, number of queues, flags; padded to eight bytes.
	var bypass uint16
	if d.failOpen {
		bypass = 1
	}
	var info xt.Unknown
	for _, field := range []uint16{queueID, 1, bypass, 0} {
		info = binary.NativeEndian.AppendUint16(info, field)
	}
	return []expr.Any{&expr.Target{Name: "NFQUEUE", Rev: 3, Info: &info}}
}

func equals(data []byte) expr.Any {
	return &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: data}
}

// inSet: the address at this place of the IPv4 header belongs to a selected pod.
func inSet(set *nftables.Set, offset uint32) []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: 4},
		&expr.Lookup{SourceRegister: 1, SetName: set.Name, SetID: set.ID},
	}
}

func toDNS() []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1}, equals([]byte{unix.IPPROTO_UDP}),
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		equals(binaryutil.BigEndian.PutUint16(53)),
	}
}

func state(bits uint32) []expr.Any {
	return []expr.Any{
		&expr.Ct{Register: 1, Key: expr.CtKeySTATE},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: binaryutil.NativeEndian.PutUint32(bits), Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: make([]byte, 4)},
	}
}

func labelled() []expr.Any {
	return []expr.Any{
		&expr.Ct{Register: 1, Key: expr.CtKeyLABELS},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 16, Mask: label(), Xor: make([]byte, 16)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: make([]byte, 16)},
	}
}

// label is the bit of a judged connection, as the kernel has its 128 bits.
func label() []byte {
	bits := make([]byte, 16)
	bits[len(bits)-acceptedBit/8-1] = 1 << (acceptedBit % 8)
	return bits
}

func removeTable() error {
	nft, err := nftables.New()
	if err != nil {
		return err
	}
	table := &nftables.Table{Name: tableName, Family: nftables.TableFamilyIPv4}
	nft.AddTable(table)
	nft.DelTable(table)
	return nft.Flush()
}
