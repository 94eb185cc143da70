package chaos

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
)

// shardDraw is the random source of a round with several trackers and skewed wall clocks.
type shardDraw struct {
	*draw
	trackers int
	hosts    []string
	skewed   []time.Duration
}

const clientHost = "client"

func newShardDraw(d *draw) *shardDraw {
	s := &shardDraw{draw: d, trackers: 2 + d.IntN(maxTrackers-1), skewed: d.skews()}
	s.hosts = []string{serverAt(0), serverAt(1)}
	for n := range s.trackers {
		s.hosts = append(s.hosts, trackerAt(n))
	}
	for _, k := range kinds {
		s.hosts = append(s.hosts, k.name)
	}
	s.hosts = append(s.hosts, clientHost)
	return s
}

// lasting draws the duration of a fault on a tracker or server. Half of the durations suffice for a silent tracker to
// lose its shards.
func (d *shardDraw) lasting() time.Duration {
	if d.IntN(2) == 0 {
		return d.span(50*time.Millisecond, 2*time.Second)
	}
	return d.span(5*time.Second, 10*time.Second)
}

// anyProcess draws the index of a process, trackers as often as agents.
func (d *shardDraw) anyProcess() int {
	if d.IntN(2) == 0 {
		return d.IntN(d.trackers)
	}
	return d.trackers + d.IntN(len(kinds))
}

// host returns the host of a process.
func (d *shardDraw) host(process int) string { return d.hosts[2+process] }

// of draws the duration of a fault on a process.
func (d *shardDraw) of(process int) time.Duration {
	if process < d.trackers {
		return d.lasting()
	}
	return d.span(50*time.Millisecond, 3*time.Second)
}

// shardFaultKinds draw the faults of each kind.
var shardFaultKinds = []func(*shardDraw) *faultOf[*shardRound]{
	drawHostKill, drawHostKill, drawHostTerminate, drawHostStop, drawHostStop, drawHostStop,
	drawLostWay, drawLostWay, drawLostWay, drawApart, drawApart, drawAlone,
	drawServerKill, drawServerStop, drawServerFull, drawHostFailpoint, drawHostFailpoint, drawHostClock, drawHostSuspension,
}

func drawHostKill(d *shardDraw) *faultOf[*shardRound] {
	n := d.anyProcess()
	return &faultOf[*shardRound]{
		Kind: "kill -9", On: d.host(n), For: d.of(n),
		begin: func(r *shardRound) { r.processes()[n].kill(true) }, end: func(r *shardRound) { r.revive(n) },
	}
}

func drawHostTerminate(d *shardDraw) *faultOf[*shardRound] {
	n := d.anyProcess()
	return &faultOf[*shardRound]{
		Kind: "SIGTERM", On: d.host(n), For: d.of(n),
		begin: func(r *shardRound) {
			if err := r.processes()[n].terminate(); err != nil {
				r.died("SIGTERM: " + err.Error())
			}
		},
		end: func(r *shardRound) { r.revive(n) },
	}
}

// drawHostStop draws the suspension of a process. A suspended tracker may wake up in the middle of a write, after
// others have taken its shards.
func drawHostStop(d *shardDraw) *faultOf[*shardRound] {
	n := d.anyProcess()
	return &faultOf[*shardRound]{
		Kind: "SIGSTOP", On: d.host(n), For: d.of(n),
		begin: func(r *shardRound) { r.processes()[n].signal(syscall.SIGSTOP) },
		end:   func(r *shardRound) { r.processes()[n].signal(syscall.SIGCONT) },
	}
}

// two draws two hosts, one of them a tracker's or server's.
func (d *shardDraw) two() (a, b string) {
	a = d.hosts[d.IntN(2+d.trackers)]
	for b = a; b == a; {
		b = d.hosts[d.IntN(len(d.hosts))]
	}
	if d.IntN(2) == 0 {
		a, b = b, a
	}
	return a, b
}

func drawLostWay(d *shardDraw) *faultOf[*shardRound] {
	a, b := d.two()
	return &faultOf[*shardRound]{
		Kind: "network lost one way", On: a, What: "to " + b, For: d.lasting(),
		begin: func(r *shardRound) { r.net.lose(way{a, b}) }, end: func(r *shardRound) { r.net.find(way{a, b}) },
	}
}

func drawApart(d *shardDraw) *faultOf[*shardRound] {
	a, b := d.two()
	ways := []way{{a, b}, {b, a}}
	return &faultOf[*shardRound]{
		Kind: "network lost both ways", On: a, What: "and " + b, For: d.lasting(),
		begin: func(r *shardRound) { r.net.lose(ways...) }, end: func(r *shardRound) { r.net.find(ways...) },
	}
}

// drawAlone draws the disconnection of a host from all others.
func drawAlone(d *shardDraw) *faultOf[*shardRound] {
	host := d.hosts[d.IntN(2+d.trackers)]
	var ways []way
	for _, other := range d.hosts {
		if other != host {
			ways = append(ways, way{host, other}, way{other, host})
		}
	}
	return &faultOf[*shardRound]{
		Kind: "host cut off", On: host, For: d.lasting(),
		begin: func(r *shardRound) { r.net.lose(ways...) }, end: func(r *shardRound) { r.net.find(ways...) },
	}
}

// drawServerKill draws a crash of a server, which returns in the same role.
func drawServerKill(d *shardDraw) *faultOf[*shardRound] {
	n := d.IntN(2)
	return &faultOf[*shardRound]{
		Kind: "kill -9 of a server of the database", On: serverAt(n), For: d.span(50*time.Millisecond, 4*time.Second),
		begin: func(r *shardRound) { r.database.servers[n].kill() }, end: func(r *shardRound) { r.database.servers[n].release() },
	}
}

func drawServerStop(d *shardDraw) *faultOf[*shardRound] {
	n := d.IntN(2)
	return &faultOf[*shardRound]{
		Kind: "SIGSTOP of a server of the database", On: serverAt(n), For: d.lasting(),
		begin: func(r *shardRound) { r.database.servers[n].stand(true) }, end: func(r *shardRound) { r.database.servers[n].stand(false) },
	}
}

func drawServerFull(d *shardDraw) *faultOf[*shardRound] {
	n := d.IntN(2)
	return &faultOf[*shardRound]{
		Kind: "disk full of a server of the database", On: serverAt(n), For: d.span(200*time.Millisecond, 4*time.Second),
		begin: func(r *shardRound) { fill(filepath.Join(r.database.servers[n].disk, ballast)) },
		end:   func(r *shardRound) { os.Remove(filepath.Join(r.database.servers[n].disk, ballast)) },
	}
}

// drawHostFailpoint draws a kill of a tracker around a commit or an upload in its next life, which starts at once.
func drawHostFailpoint(d *shardDraw) *faultOf[*shardRound] {
	n, point, times := d.IntN(d.trackers), d.points[d.IntN(len(d.points))], 1+int(d.ExpFloat64()*12)
	return &faultOf[*shardRound]{
		Kind: "failpoint", On: trackerAt(n), For: time.Millisecond, What: fmt.Sprintf("%s, at the %d.", point, times),
		begin: func(r *shardRound) { r.arm(n, arming{points: fmt.Sprintf("%s=%d:kill", point, times)}) }, end: func(*shardRound) {},
	}
}

func drawHostClock(d *shardDraw) *faultOf[*shardRound] {
	jumps := []time.Duration{-time.Hour, -3 * time.Second, 3 * time.Second, time.Hour}
	n, jump := d.IntN(d.trackers), jumps[d.IntN(len(jumps))]
	return &faultOf[*shardRound]{
		Kind: "wall clock set", On: trackerAt(n), What: "by " + jump.String(),
		begin: func(r *shardRound) { r.clocks[n].shift(jump, 0) }, end: func(r *shardRound) { r.clocks[n].shift(-jump, 0) },
	}
}

func drawHostSuspension(d *shardDraw) *faultOf[*shardRound] {
	jumps := []time.Duration{500 * time.Millisecond, 3 * time.Second, time.Hour}
	n, jump := d.IntN(d.trackers), jumps[d.IntN(len(jumps))]
	return &faultOf[*shardRound]{
		Kind: "clocks jump forward", On: trackerAt(n), For: time.Millisecond, What: "by " + jump.String(),
		begin: func(r *shardRound) { r.clocks[n].shift(jump, jump) }, end: func(*shardRound) {},
	}
}

// failover draws a round's optional failover: the primary is killed and the standby promoted. Half of the old
// primaries return and accept writes.
func (d *shardDraw) failover() *faultOf[*shardRound] {
	if d.IntN(5) < 2 {
		return nil
	}
	back := d.IntN(2) == 0
	kind := "failover of the database"
	if back {
		kind += ", the old primary comes back"
	}
	return &faultOf[*shardRound]{
		Kind: kind, At: d.span(d.within/4, d.within), For: d.lasting(),
		begin: func(r *shardRound) {
			ctx, cancel := context.WithTimeout(context.Background(), shardPatience)
			defer cancel()
			if err := r.database.failOver(ctx); err != nil {
				r.died("failover: " + err.Error())
			}
		},
		end: func(r *shardRound) {
			if back {
				r.database.servers[1-r.database.first()].release()
			}
		},
	}
}

// revive restarts a killed process. keep restarts the trackers.
func (r *shardRound) revive(n int) {
	p := r.processes()[n]
	p.release()
	if n < len(r.trackers) {
		return
	}
	if err := p.start(arming{}); err != nil {
		r.died("start: " + err.Error())
	}
}

// dialTrackers connects from a host to all trackers.
func (n *network) dialTrackers(host string, trackers int) (*grpc.ClientConn, error) {
	var addresses []string
	for i := range trackers {
		addresses = append(addresses, n.addr(trackerAt(i))+grpcPort)
	}
	return dial(strings.Join(addresses, ","), grpc.WithContextDialer(func(_ context.Context, addr string) (net.Conn, error) { return n.dial(host, addr) }))
}

// countLog counts events in a tracker's log.
func countLog(text string, counts map[string]int) {
	for name, times := range firedFailpoints(text) {
		counts["failpoint "+name] += times
	}
	for what, line := range map[string]string{
		"shards taken":                             `msg="shard acquired"`,
		"shards found to be another tracker's":     `msg="shard lost to another tracker"`,
		"shards given up to another tracker":       `msg="rebalancing: releasing a shard"`,
		"times that the database was found away":   `msg="database unavailable; rejecting writes`,
		"times that the database was found back":   `msg="the database is back"`,
		"times that a shard could not be taken up": `msg="the shard cannot be opened`,
	} {
		if times := strings.Count(text, line); times > 0 {
			counts[what] += times
		}
	}
}
