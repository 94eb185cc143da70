package chaos

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tilth-dev/tilth/internal/retry"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records/bolt"
)

// network is a set of hosts connected to a switch. Each host and the switch is a network namespace. The test's own
// namespace is not involved.
type network struct {
	*testing.T
	prefix string
	places map[string]int

	mu   sync.Mutex
	lost map[way]int // number of faults that drop packets of each way
}

// way is one of the two directions between two hosts.
type way struct{ from, to string }

// networks counts the networks of this process.
var networks atomic.Int64

const switchName = "switch"

// newNetwork creates hosts of the given names. It skips the test if that is not permitted.
func newNetwork(t *testing.T, names ...string) *network {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root may make network namespaces")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Fatal("ip is not installed: run scripts/packages.sh test")
	}
	n := &network{T: t, prefix: fmt.Sprintf("tilth-%d-%d-", os.Getpid(), networks.Add(1)), places: map[string]int{}, lost: map[way]int{}}
	if out, err := exec.Command("ip", "netns", "add", n.space(switchName)).CombinedOutput(); err != nil {
		t.Skipf("this kernel gives no network namespaces: %v: %s", err, out)
	}
	t.Cleanup(func() { n.ip("netns", "del", n.space(switchName)) })
	if out, err := exec.Command("ip", "-n", n.space(switchName), "link", "add", "bridge", "type", "bridge").CombinedOutput(); err != nil {
		t.Skipf("this kernel has no bridges: %v: %s", err, out)
	}
	n.ip("-n", n.space(switchName), "link", "set", "bridge", "up")
	for i, name := range names {
		n.places[name] = i
		n.ip("netns", "add", n.space(name))
		t.Cleanup(func() { n.ip("netns", "del", n.space(name)) })
		n.ip("-n", n.space(switchName), "link", "add", n.port(name), "type", "veth", "peer", "name", "eth0", "netns", n.space(name))
		n.ip("-n", n.space(switchName), "link", "set", n.port(name), "master", "bridge", "up")
		n.ip("-n", n.space(name), "address", "add", n.addr(name)+"/24", "dev", "eth0")
		n.ip("-n", n.space(name), "link", "set", "eth0", "up")
		n.ip("-n", n.space(name), "link", "set", "lo", "up")
	}
	return n
}

func (n *network) ip(arguments ...string) {
	n.Helper()
	if out, err := exec.Command("ip", arguments...).CombinedOutput(); err != nil {
		n.Errorf("ip %s: %v: %s", strings.Join(arguments, " "), err, out)
	}
}

func (n *network) space(host string) string { return n.prefix + host }
func (n *network) port(host string) string  { return "port" + strconv.Itoa(n.places[host]) }
func (n *network) addr(host string) string  { return "10.77.0." + strconv.Itoa(n.places[host]+1) }

// cut disconnects a host. Packets to and from it are dropped silently.
func (n *network) cut(host string) {
	n.ip("-n", n.space(switchName), "link", "set", n.port(host), "down")
}

func (n *network) heal(host string) {
	n.ip("-n", n.space(switchName), "link", "set", n.port(host), "up")
}

// lose silently drops the packets of some ways until find is called.
func (n *network) lose(ways ...way) {
	if err := n.change(1, ways); err != nil {
		n.Error(err)
	}
}

func (n *network) find(ways ...way) {
	if err := n.change(-1, ways); err != nil {
		n.Error(err)
	}
}

// change adds to the number of faults of ways.
func (n *network) change(by int, ways []way) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	rules := "add table bridge tilth\nadd chain bridge tilth ways { type filter hook forward priority 0; }\nflush chain bridge tilth ways\n"
	for _, w := range ways {
		n.lost[w] += by
	}
	for w, times := range n.lost {
		if times > 0 {
			rules += fmt.Sprintf("add rule bridge tilth ways iifname %s oifname %s drop\n", n.port(w.from), n.port(w.to))
		}
	}
	cmd := exec.Command("ip", "netns", "exec", n.space(switchName), "nft", "-f", "-")
	cmd.Stdin = strings.NewReader(rules)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("nft: %w: %s", err, out)
	}
	return nil
}

// dial connects from a host.
func (n *network) dial(host, addr string) (net.Conn, error) {
	type result struct {
		net.Conn
		error
	}
	done := make(chan result, 1)
	go func() {
		// The thread must return to its namespace: if it ended, the processes started on it would be killed.
		runtime.LockOSThread()
		conn, err := within(filepath.Join("/run/netns", n.space(host)), func() (net.Conn, error) { return net.DialTimeout("tcp", addr, time.Second) })
		done <- result{conn, err}
	}()
	r := <-done
	return r.Conn, r.error
}

// within calls dial with the thread in another namespace. It unlocks the thread once that is back in its own.
func within(space string, dial func() (net.Conn, error)) (net.Conn, error) {
	own, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, err
	}
	defer own.Close()
	other, err := os.Open(space)
	if err != nil {
		return nil, err
	}
	defer other.Close()
	if err := unix.Setns(int(other.Fd()), unix.CLONE_NEWNET); err != nil {
		return nil, err
	}
	conn, err := dial()
	if unix.Setns(int(own.Fd()), unix.CLONE_NEWNET) == nil {
		runtime.UnlockOSThread()
	}
	return conn, err
}

// TestHostsThatAreCutOffComeBack runs a farm of several hosts twice: undisturbed, and with a runner, the tracker, a
// builder and then both tuners disconnected for longer than leases live. Both runs must end with the same records.
func TestHostsThatAreCutOffComeBack(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: runs a farm of hosts twice, and cuts each of them off for longer than a lease lives")
	}
	t.Parallel() // mostly waits
	n := newNetwork(t, "tracker", "client", "tuner-1", "tuner-2", "builder-1", "builder-2", "runner-1", "runner-2")
	peace := n.run(nil)
	partitioned := n.run([]string{"runner-1", "tracker", "builder-1", "tuner-1", "tuner-2"})
	if !slices.Equal(peace, partitioned) {
		t.Errorf("in peace there are %d records, with partitions %d, and they differ", len(peace), len(partitioned))
	}
	if len(peace) != jobsPerRound*jobTrials {
		t.Errorf("%d records, want %d", len(peace), jobsPerRound*jobTrials)
	}
}

// cutTime exceeds the lifetime of leases.
const cutTime = leaseTimeout + 500*time.Millisecond

// run runs a farm's jobs while hosts are disconnected in turn, and returns the sorted recorded outcomes.
func (n *network) run(cut []string) (outcomes []string) {
	n.Helper()
	binary, dir := buildProgram(n.T), n.TempDir()
	journals, data := filepath.Join(dir, journalsName), filepath.Join(dir, dataName)
	for _, d := range []string{journals, data} {
		if err := os.Mkdir(d, 0o755); err != nil {
			n.Fatal(err)
		}
	}
	addr := n.addr("tracker") + ":9190"
	lives := 0
	begin := func(kind, name, at, folder string) *process {
		p := &process{
			name: name, announces: kind == "tracker", log: filepath.Join(dir, name+".log"),
			lives: func() int { lives++; return lives }, died: func(how string) { n.Error(how) },
			command: func(life int) []string {
				return []string{"ip", "netns", "exec", n.space(name), binary, processArgument, "-kind", kind, "-name", name, "-life", strconv.Itoa(life), "-tracker", at, "-dir", folder}
			},
		}
		if err := p.start(arming{}); err != nil {
			n.Fatal(err)
		}
		return p
	}
	tracker := begin("tracker", "tracker", addr, data)
	defer tracker.kill(true)
	var agents []*process
	for _, k := range kinds {
		a := begin(k.kind, k.name, addr, journals)
		defer a.kill(true)
		agents = append(agents, a)
	}
	proxy, err := newProxy(func() (net.Conn, error) { return n.dial("client", addr) })
	if err != nil {
		n.Fatal(err)
	}
	defer proxy.close()
	ctx, cancel := withPatience(n.Context(), patience)
	defer cancel()
	cutting := make(chan struct{})
	go func() {
		defer close(cutting)
		for _, host := range cut {
			n.cut(host)
			_ = retry.Sleep(ctx, cutTime)
			n.heal(host)
		}
	}()
	conn, err := dial(proxy.addr())
	if err != nil {
		n.Fatal(err)
	}
	defer conn.Close()
	watched, err := follow(ctx, conn, journals, 0, make([]intervention, jobsPerRound), jobSpec)
	<-cutting
	if err != nil {
		n.Fatal(err)
	}
	for _, p := range append(agents, tracker) {
		if err := p.stop(20 * time.Second); err != nil {
			n.Error(err)
		}
	}
	n.judge(data, journals, watched)
	return recordedOutcomes(n.T, filepath.Join(data, recordsName))
}

func (n *network) judge(data, journals string, watched map[string][]*tilthv1.JobEvent) {
	n.Helper()
	v, err := check(farmData{data: data}, journals, watched)
	if err != nil {
		n.Fatal(err)
	}
	for _, broken := range first(v.Violations, 10) {
		n.Error(broken)
	}
	n.Logf("%d trials, measured %d times under %d leases, %d dead letters", v.Trials, v.Executions, v.Leases, v.DeadLetters)
}

// recordedOutcomes returns the records without the fields that vary between measurements.
func recordedOutcomes(t *testing.T, path string) (out []string) {
	t.Helper()
	db, err := bolt.OpenReadOnly(path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.List(t.Context(), "", "", func(r *tilthv1.Record) error {
		m := r.GetMeasurement()
		out = append(out, fmt.Sprintln(r.GetWorkloadDigest(), r.GetTarget(), m.GetCandidate().GetDigest(), m.GetError()))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}
