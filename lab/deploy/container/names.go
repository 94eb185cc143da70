package container

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/miekg/dns"
)

// NameServerAddr is where containers look names up, in their own namespace, as with Docker.
var NameServerAddr = netip.AddrFrom4([4]byte{127, 0, 0, 11})

// Lookup returns the addresses of a name; known is false when there is no such name.
type Lookup func(name string) (addrs []netip.Addr, known bool)

// NameServer answers for a lookup, by UDP and TCP.
type NameServer struct{ servers []*dns.Server }

// ServeNames answers at port 53 of an address in a namespace.
func ServeNames(space *Namespace, addr netip.Addr, lookup Lookup) (*NameServer, error) {
	at := netip.AddrPortFrom(addr, 53)
	var packets net.PacketConn
	var streams net.Listener
	err := space.Do(func() (err error) {
		if packets, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(at)); err == nil {
			streams, err = net.ListenTCP("tcp", net.TCPAddrFromAddrPort(at))
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("name service: %w", err)
	}
	handler := dns.HandlerFunc(func(w dns.ResponseWriter, question *dns.Msg) { _ = w.WriteMsg(answer(question, lookup)) })
	s := &NameServer{servers: []*dns.Server{{PacketConn: packets, Handler: handler},
		{Listener: streams, Handler: handler}}}
	for _, server := range s.servers {
		// It ends with Close or with the process.
		go func() { _ = server.ActivateAndServe() }()
	}
	return s, nil
}

// answer has addresses of version 4 only.
func answer(question *dns.Msg, lookup Lookup) *dns.Msg {
	reply := new(dns.Msg).SetReply(question)
	if len(question.Question) != 1 {
		return reply.SetRcode(question, dns.RcodeFormatError)
	}
	q := question.Question[0]
	addrs, known := lookup(q.Name[:len(q.Name)-1])
	if !known {
		return reply.SetRcode(question, dns.RcodeNameError)
	}
	if q.Qtype != dns.TypeA {
		return reply
	}
	for _, addr := range addrs {
		head := dns.RR_Header{Name: q.Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 5}
		reply.Answer = append(reply.Answer, &dns.A{Hdr: head, A: net.IP(addr.AsSlice())})
	}
	return reply
}
