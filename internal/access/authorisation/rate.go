package authorisation

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tilth-dev/tilth/internal/wire"
)

// rate is how many calls there may be: so many a second on average, and so many at once after a pause.
type rate struct{ perSecond, burst float64 }

const (
	// callsOfSession is what each session of an identity adds to the calls that it may make in a second: a farm's
	// agents may share one.
	callsOfSession = 50
	// burstSeconds is for how long nobody may have called who calls for all of that at once.
	burstSeconds = 2
	// callsOfStranger are those of one address that prove nothing, in a second.
	callsOfStranger = 50
	// How often the sessions of one who calls too often are counted.
	recount = 100 * time.Millisecond
	// mostBuckets bounds what is remembered.
	mostBuckets = 1 << 16
)

// loggedRates bound the calls of an identity that the audit log gets a line of, so that it tells of days, whoever
// calls.
var loggedRates = map[logged]rate{
	audited: {perSecond: 20, burst: 600},
	noted:   {perSecond: 100, burst: 20_000}, // a farm's agents join at once
}

// rates counts calls by who makes them.
type rates struct {
	mu      sync.Mutex
	buckets map[bucketKey]*bucket
}

type bucketKey struct {
	who string
	log logged // 0 = all calls
}

// bucket holds what may be called at once, and fills with time.
type bucket struct {
	rate
	calls   float64
	at      time.Time
	counted time.Time
}

// fill brings a bucket to now.
func (b *bucket) fill(now time.Time) {
	if passed := now.Sub(b.at).Seconds(); passed > 0 {
		b.calls = min(b.burst, b.calls+passed*b.perSecond)
		b.at = now
	}
}

// wait says after how long a bucket holds a call; 0 = now.
func (b *bucket) wait() time.Duration {
	if b.calls >= 1 {
		return 0
	}
	return max(time.Duration((1-b.calls)/b.perSecond*float64(time.Second)), time.Millisecond)
}

// take counts a call, or says after how long there may be one. More is asked for the rate of a bucket that is empty;
// nil = it stays.
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

// wait says after how long there may be a call, which it does not count.
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
	if r.buckets == nil || len(r.buckets) >= mostBuckets {
		r.forget(now)
	}
	b := &bucket{rate: first, calls: first.burst, at: now}
	r.buckets[key] = b
	return b
}

// forget drops the buckets that are full, of which nothing is to be remembered; all of them if that is not enough.
func (r *rates) forget(now time.Time) {
	for key, b := range r.buckets {
		if b.fill(now); b.calls == b.burst {
			delete(r.buckets, key)
		}
	}
	if r.buckets == nil || len(r.buckets) >= mostBuckets/2 {
		r.buckets = map[bucketKey]*bucket{}
	}
}

// frequent refuses a call of somebody who calls too often.
func (g *Gate) frequent(c *call) error {
	wait := g.tooOften(c)
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

// tooOften counts a call, and says after how long there may be one; 0 = now.
func (g *Gate) tooOften(c *call) time.Duration {
	now, host := g.cfg.Now(), hostOf(c.caller.from)
	switch {
	case g.cfg.CallsPerSecond == 0:
		return 0
	case c.caller.proved:
		return max(g.ofIdentity(c, now), g.ofWritten(c, now))
	case host == "":
		return 0 // this machine's own, where nobody is asked
	case g.open() && !c.rule.public:
		return g.rates.take(bucketKey{who: "host " + host}, now, perSecond(g.cfg.CallsPerSecond), nil)
	}
	return g.rates.take(strangerKey(host), now, perSecond(callsOfStranger), nil)
}

func strangerKey(host string) bucketKey { return bucketKey{who: "stranger " + host} }

// strangerWaits says after how long an address may make another call that proves nothing; 0 = now.
func (g *Gate) strangerWaits(from string) time.Duration {
	host := hostOf(from)
	if g.cfg.CallsPerSecond == 0 || host == "" {
		return 0
	}
	return g.rates.wait(strangerKey(host), g.cfg.Now())
}

func (g *Gate) ofIdentity(c *call, now time.Time) time.Duration {
	name := c.caller.Name
	return g.rates.take(bucketKey{who: name}, now, perSecond(g.cfg.CallsPerSecond), func() rate {
		return perSecond(g.cfg.CallsPerSecond + callsOfSession*float64(g.cfg.Holdings.Sessions(name)))
	})
}

func (g *Gate) ofWritten(c *call, now time.Time) time.Duration {
	limit, is := loggedRates[c.rule.log]
	if !is {
		return 0
	}
	return g.rates.take(bucketKey{who: c.caller.Name, log: c.rule.log}, now, limit, nil)
}

func perSecond(calls float64) rate { return rate{calls, burstSeconds * calls} }

// hostOf is an address without its port, and of IPv6 without what one host may choose; empty for this machine's own.
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
