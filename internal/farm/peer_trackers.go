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

	"github.com/tilth-dev/tilth/internal/access/certs"
	"github.com/tilth-dev/tilth/internal/agent"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker"
)

// peerTrackers connects to the trackers of other shards of a database, to forward calls of web pages. Their
// addresses and certificates come from the database.
type peerTrackers struct {
	*agent.Trackers
	host    []byte        // identifies this tracker's host
	tls     *certs.Server // TLS of this tracker; nil means that no tracker uses TLS
	members atomic.Pointer[[]records.Member]
}

func newOthers(security tracker.Security) (o *peerTrackers, err error) {
	o = &peerTrackers{host: thisHost(), tls: security.TLS}
	o.members.Store(&[]records.Member{})
	side := insecure.NewCredentials()
	if o.tls != nil {
		side = certs.NewPinned(o.pins)
	}
	o.Trackers, err = agent.DialTrackers(side)
	return o, err
}

// addressOf returns the address of a listener as callers use it.
func addressOf(listener net.Addr) string {
	if listener.Network() == "unix" {
		return "unix:" + listener.String()
	}
	return listener.String()
}

// thisHost returns a digest of the system's boot id and the process's network namespace. It is equal for
// exactly those processes that share the loopback interface. It is empty if the system does not provide them.
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

// here reports whether traffic to a tracker stays on this host.
func (o *peerTrackers) here(m records.Member) bool {
	return certs.IsLocal(m.Address) && len(o.host) > 0 && bytes.Equal(m.Host, o.host)
}

// update replaces the list of peer trackers. Without certificates, loopback addresses of other hosts must be
// dropped, because they would lead to another listener on this host.
func (o *peerTrackers) update(members []records.Member) {
	o.members.Store(&members)
	var addresses []string
	for _, m := range members {
		if m.Address != "" && (o.tls != nil || o.here(m) || !certs.IsLocal(m.Address)) {
			addresses = append(addresses, m.Address)
		}
	}
	o.SetAddresses(addresses)
}

// pins returns the digests of the peers' certificates.
func (o *peerTrackers) pins() (pins [][]byte) {
	for _, m := range *o.members.Load() {
		if len(m.Certificate) > 0 {
			pins = append(pins, m.Certificate)
		}
	}
	return pins
}

// shown returns the digest of this tracker's certificate, or "".
func (o *peerTrackers) shown() []byte {
	if o.tls == nil {
		return nil
	}
	return o.tls.Digest()
}

// call calls a shard that another tracker serves. It sends a token without TLS only within this host.
func (o *peerTrackers) call(ctx context.Context, shard int, authorization, method string, req, reply any) error {
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
