package farm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"net"
	"os"
	"sync/atomic"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/access/caller"
	"github.com/tilth-dev/tilth/internal/access/certs"
	"github.com/tilth-dev/tilth/internal/agent"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker"
)

// others are the trackers that serve other shards of a database, to which calls of pages are passed on. Where they
// are, and what certificates they show, the database tells.
type others struct {
	*agent.Trackers
	host    []byte        // what this tracker tells of its host
	tls     *certs.Server // this tracker's side of TLS; nil = there is none, of others neither
	members atomic.Pointer[[]records.Member]
}

func newOthers(security tracker.Security) (o *others, err error) {
	o = &others{host: thisHost(), tls: security.TLS}
	o.members.Store(&[]records.Member{})
	side := insecure.NewCredentials()
	if o.tls != nil {
		side = certs.NewPinned(o.pins)
	}
	o.Trackers, err = agent.DialTrackers(side)
	return o, err
}

// addressOf is that of a listener, as callers name it.
func addressOf(listener net.Addr) string {
	if listener.Network() == "unix" {
		return "unix:" + listener.String()
	}
	return listener.String()
}

// thisHost is the same for all processes that share the loopback interface of this one, and for no others: it is a
// digest of the system's boot and of the process's network. Empty where the system does not tell.
func thisHost() []byte {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return nil
	}
	network, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return nil
	}
	sum := sha256.Sum256([]byte(string(boot) + network))
	return sum[:]
}

// here says whether what is sent to a tracker stays on this host.
func (o *others) here(m records.Member) bool {
	return caller.Local(m.Address) && len(o.host) > 0 && bytes.Equal(m.Host, o.host)
}

// tell says who the others are now. Without certificates, an address that means another host's own would lead to
// whoever listens there on this one.
func (o *others) tell(members []records.Member) {
	o.members.Store(&members)
	var addresses []string
	for _, m := range members {
		if m.Address != "" && (o.tls != nil || o.here(m) || !caller.Local(m.Address)) {
			addresses = append(addresses, m.Address)
		}
	}
	o.Tell(addresses)
}

// pins are the digests of the certificates that others show.
func (o *others) pins() (pins [][]byte) {
	for _, m := range *o.members.Load() {
		if len(m.Certificate) > 0 {
			pins = append(pins, m.Certificate)
		}
	}
	return pins
}

// shown is the digest of the certificate that this tracker shows; empty = it has none.
func (o *others) shown() []byte {
	if o.tls == nil {
		return nil
	}
	return o.tls.Digest()
}

// call makes a call of a shard that another tracker has. A token is sent in the clear on this host alone.
func (o *others) call(ctx context.Context, shard int, authorization, method string, req, reply any) error {
	if authorization != "" {
		for _, m := range *o.members.Load() {
			if o.tls == nil && m.Address != "" && !o.here(m) {
				return status.Errorf(codes.FailedPrecondition,
					"another tracker has shard %d, and a token would be sent to %s of another host in the clear: give the trackers certificates, or use the command line", shard, m.Address)
			}
		}
	}
	return o.Invoke(ctx, shard, authorization, method, req, reply)
}
