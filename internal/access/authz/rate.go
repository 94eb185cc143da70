package authz

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// rate limits calls: an average rate per second, and a burst after a pause.
type rate struct{ perSecond, burst float64 }

const (
	// callsPerSession is what each session adds to the rate of its identity: a farm's agents may share an identity.
	callsPerSession = 50
	// burstSeconds is the idle time after which a caller may make that many seconds' worth of calls at once.
	burstSeconds = 2
	// unauthenticatedCalls is the rate of unauthenticated calls from one address.
	unauthenticatedCalls = 50
	// recount is how often the sessions of a throttled caller are counted again.
	recount = 100 * time.Millisecond
	// maxBuckets bounds the number of buckets.
	maxBuckets = 1 << 16
)

// loggedRates limit an identity's calls that are written to the audit log, so that the log covers days.
var loggedRates = map[tilthv1.Audit]rate{
	tilthv1.Audit_AUDIT_REQUIRED: {perSecond: 20, burst: 600},
	tilthv1.Audit_AUDIT_NOTED:    {perSecond: 100, burst: 20_000}, // a farm's agents join at the same time
}

// rates limits calls per caller.
type rates struct {
	mu      sync.Mutex
	buckets map[bucketKey]*bucket
}

type bucketKey struct {
	who string
	log tilthv1.Audit // 0 = all calls
}

// bucket is a token bucket.
type bucket struct {
	rate
	calls   float64
	at      time.Time
	counted time.Time
}

// fill refills a bucket up to now.
func (b *bucket) fill(now time.Time) {
	if passed := now.Sub(b.at).Seconds(); passed > 0 {
		b.calls = min(b.burst, b.calls+passed*b.perSecond)
		b.at = now
	}
}

// wait returns the time until a call is available; 0 = now.
func (b *bucket) wait() time.Duration {
	if b.calls >= 1 {
		return 0
	}
	return max(time.Duration((1-b.calls)/b.perSecond*float64(time.Second)), time.Millisecond)
}

// take takes a call from a bucket, or returns the time until there is one. A new bucket has the rate first. more,
// unless nil, updates the rate of an empty bucket.
func (r *rates) take(key bucketKey, now time.Time, first rate, more func() rate) (wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.bucket(key, now, first)
	b.fill(now)
	if b.calls < 1 && more != nil && now.Sub(b.counted) >= recount {
		was := b.burst
		b.rate, b.counted = more(), now
		b.calls = min(b.burst, b.calls+max(0, b.burst-was))
	}
	if wait = b.wait(); wait == 0 {
		b.calls--
	}
	return wait
}

// wait returns the time until a call is available, without taking it.
func (r *rates) wait(key bucketKey, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.buckets[key]
	if b == nil {
		return 0
	}
	b.fill(now)
	return b.wait()
}

func (r *rates) bucket(key bucketKey, now time.Time, first rate) *bucket {
	if b := r.buckets[key]; b != nil {
		return b
	}
	if r.buckets == nil || len(r.buckets) >= maxBuckets {
		r.forget(now)
	}
	b := &bucket{rate: first, calls: first.burst, at: now}
	r.buckets[key] = b
	return b
}

// forget drops full buckets, which carry no state; if that is not enough, it drops all.
func (r *rates) forget(now time.Time) {
	for key, b := range r.buckets {
		if b.fill(now); b.calls == b.burst {
			delete(r.buckets, key)
		}
	}
	if r.buckets == nil || len(r.buckets) >= maxBuckets/2 {
		r.buckets = map[bucketKey]*bucket{}
	}
}

// checkRate refuses a call of a caller over its rate.
func (g *Gate) checkRate(c *call) error {
	wait := g.takeCall(c)
	if wait == 0 {
		return nil
	}
	who := c.caller.Name
	if !c.caller.proved {
		who = hostOf(c.caller.from)
	}
	return tooOften(who, c.verb, wait)
}

func tooOften(who, what string, wait time.Duration) error {
	return wire.RefuseUntil(wait, codes.ResourceExhausted, wire.ReasonRate, "%s calls %s too often: try again in %v", who, what, wait.Round(time.Millisecond))
}

// takeCall takes a call from the caller's bucket, or returns the time until there is one; 0 = now.
func (g *Gate) takeCall(c *call) time.Duration {
	now, host := g.cfg.Now(), hostOf(c.caller.from)
	switch {
	case g.cfg.CallsPerSecond == 0:
		return 0
	case c.caller.proved:
		return max(g.ofIdentity(c, now), g.ofWritten(c, now))
	case host == "":
		return 0 // this machine, on an open tracker
	case g.open() && !c.rule.GetPublic():
		return g.rates.take(bucketKey{who: "host " + host}, now, perSecond(g.cfg.CallsPerSecond), nil)
	}
	return g.rates.take(strangerKey(host), now, perSecond(unauthenticatedCalls), nil)
}

func strangerKey(host string) bucketKey { return bucketKey{who: "stranger " + host} }

// unauthenticatedWait returns the time until an address may make another unauthenticated call; 0 = now.
func (g *Gate) unauthenticatedWait(from string) time.Duration {
	host := hostOf(from)
	if g.cfg.CallsPerSecond == 0 || host == "" {
		return 0
	}
	return g.rates.wait(strangerKey(host), g.cfg.Now())
}

func (g *Gate) ofIdentity(c *call, now time.Time) time.Duration {
	name := c.caller.Name
	return g.rates.take(bucketKey{who: name}, now, perSecond(g.cfg.CallsPerSecond), func() rate {
		return perSecond(g.cfg.CallsPerSecond + callsPerSession*float64(g.cfg.Holdings.Sessions(name)))
	})
}

func (g *Gate) ofWritten(c *call, now time.Time) time.Duration {
	limit, is := loggedRates[c.rule.GetAudit()]
	if !is {
		return 0
	}
	return g.rates.take(bucketKey{who: c.caller.Name, log: c.rule.GetAudit()}, now, limit, nil)
}

func perSecond(calls float64) rate { return rate{calls, burstSeconds * calls} }

// hostOf returns an address without its port; of an IPv6 address only the network prefix, since a host may choose the
// rest. It is empty for this machine.
func hostOf(from string) string {
	host, _, err := net.SplitHostPort(from)
	if err != nil {
		return ""
	}
	ip, err := netip.ParseAddr(host)
	if err != nil || ip.IsLoopback() {
		return ""
	}
	if ip = ip.Unmap(); ip.Is6() {
		return netip.PrefixFrom(ip, 64).Masked().String()
	}
	return ip.String()
}
