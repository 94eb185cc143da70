package farm

import (
	"context"
	"net"
	"sync/atomic"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/access/caller"
	"github.com/tilth-dev/tilth/access/certs"
	"github.com/tilth-dev/tilth/agent"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker"
)

// others are the trackers that serve other shards of a database, to which calls of pages are passed on. Where they
// are, and what certificates they show, the database tells.
type others struct {
	*agent.Trackers
	tls     *certs.Server // this tracker's side of TLS; nil = there is none, of others neither
	members atomic.Pointer[[]records.Member]
}

func newOthers(security tracker.Security) (o *others, err error) {
	o = &others{tls: security.TLS}
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

// tell says who the others are now.
func (o *others) tell(members []records.Member) {
	o.members.Store(&members)
	var addresses []string
	for _, m := range members {
		if m.Address != "" {
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

// call makes a call of a shard that another tracker has. A token is sent in the clear on this machine alone.
func (o *others) call(ctx context.Context, shard int, authorization, method string, req, reply any) error {
	if authorization != "" {
		for _, m := range *o.members.Load() {
			if o.tls == nil && !caller.Local(m.Address) {
				return status.Errorf(codes.FailedPrecondition,
					"another tracker has shard %d, and a token would be sent to %s in the clear: give the trackers certificates, or use the command line", shard, m.Address)
			}
		}
	}
	return o.Invoke(ctx, shard, authorization, method, req, reply)
}
