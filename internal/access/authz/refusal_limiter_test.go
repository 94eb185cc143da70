package authz

import (
	"fmt"
	"testing"
	"time"
)

func TestAuditedRefusalsPerHostAreBounded(t *testing.T) {
	s := refusalLimiter{perKey: strangerRefusals, keys: strangerHosts}
	now := time.Unix(1000, 0)
	written := func(n int, from func(i int) string) (count int) {
		for i := range n {
			if is, _ := s.count(portless(from(i)), now); is {
				count++
			}
		}
		return count
	}
	one := func(i int) string { return fmt.Sprintf("192.0.2.1:%d", i) }
	if n := written(100, one); n != strangerRefusals {
		t.Errorf("%d of 100 from one host, want %d", n, strangerRefusals)
	}
	if n := written(5, func(i int) string { return "192.0.2.2:1" }); n != 5 {
		t.Errorf("%d of 5 from another host", n)
	}
	if n := written(1000, func(i int) string { return fmt.Sprintf("[2001:db8::%x]:1", i) }); n != strangerHosts-2 {
		t.Errorf("%d of 1000 from as many hosts, want %d", n, strangerHosts-2)
	}
	now = now.Add(refusalWindow)
	if is, suppressed := s.count(portless(one(1)), now); !is || suppressed != 100-strangerRefusals+1000-(strangerHosts-2) {
		t.Errorf("afterwards: written %v, and %d were not before", is, suppressed)
	}
	if _, suppressed := s.count(portless(one(2)), now); suppressed != 0 {
		t.Errorf("told again of %d", suppressed)
	}
}
