package agent

import (
	"cmp"
	"slices"

	"google.golang.org/protobuf/proto"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// together merges the responses of all shards: it adds or lists what each shard knows alone, and takes shared
// values from the first.
func together(replies []proto.Message) proto.Message {
	first := replies[0]
	for _, other := range replies[1:] {
		switch first := first.(type) {
		case *tilthv1.ListOwnersResponse:
			addOwners(first, other.(*tilthv1.ListOwnersResponse))
		case *tilthv1.StatArtifactResponse:
			o := other.(*tilthv1.StatArtifactResponse)
			if first.GetComplete() != o.GetComplete() || first.GetReceivedBytes() != o.GetReceivedBytes() {
				first.Complete, first.ReceivedBytes = false, 0 // it is sent to all shards from the beginning
			}
		case *tilthv1.ListAgentsResponse:
			byName := map[string]*tilthv1.Agent{}
			for _, a := range other.(*tilthv1.ListAgentsResponse).GetAgents() {
				byName[a.GetSpec().GetName()] = a
			}
			for _, a := range first.GetAgents() {
				addAgent(a, byName[a.GetSpec().GetName()])
			}
		case *tilthv1.GetAgentResponse:
			addAgent(first.GetAgent(), other.(*tilthv1.GetAgentResponse).GetAgent())
		case *tilthv1.ListDevicesResponse:
			byName := map[string]*tilthv1.Device{}
			for _, d := range other.(*tilthv1.ListDevicesResponse).GetDevices() {
				byName[d.GetAgent().GetSpec().GetName()] = d
			}
			for _, d := range first.GetDevices() {
				addDevice(d, byName[d.GetAgent().GetSpec().GetName()])
			}
		case *tilthv1.GetDeviceResponse:
			addDevice(first.GetDevice(), other.(*tilthv1.GetDeviceResponse).GetDevice())
		}
	}
	return first
}

// addOwners merges two pages with the same start. The merged page ends where the shorter one ends.
func addOwners(page, other *tilthv1.ListOwnersResponse) {
	page.Owners = append(page.Owners, other.GetOwners()...)
	slices.SortFunc(page.Owners, func(a, b *tilthv1.Owner) int { return cmp.Compare(a.GetName(), b.GetName()) })
	if end := other.GetNextPageToken(); end != "" && (page.GetNextPageToken() == "" || end < page.GetNextPageToken()) {
		page.NextPageToken = end
	}
	if end := page.GetNextPageToken(); end != "" { // the token is a prefix and the name of the page's last owner
		page.Owners = slices.DeleteFunc(page.Owners, func(o *tilthv1.Owner) bool { return end[:1]+o.GetName() > end })
	}
}

// addAgent merges an agent from another shard, which may be nil.
func addAgent(a, other *tilthv1.Agent) {
	if a == nil || other == nil {
		return
	}
	a.Completed += other.GetCompleted()
	a.Failed += other.GetFailed()
	for _, state := range []tilthv1.AgentState{tilthv1.AgentState_AGENT_STATE_IDLE, tilthv1.AgentState_AGENT_STATE_BUSY} {
		if other.GetState() == state && a.GetState() != tilthv1.AgentState_AGENT_STATE_BUSY {
			a.State = state
		}
	}
	if other.GetSeenAt().AsTime().After(a.GetSeenAt().AsTime()) {
		a.SeenAt = other.GetSeenAt()
	}
	if other.GetRestingUntil().AsTime().After(a.GetRestingUntil().AsTime()) {
		a.RestingUntil, a.RestReason = other.GetRestingUntil(), other.GetRestReason()
	}
}

// addDevice merges a device from another shard, which may be nil. States are ordered by severity.
func addDevice(d, other *tilthv1.Device) {
	if d == nil || other == nil {
		return
	}
	addAgent(d.GetAgent(), other.GetAgent())
	d.Leases += other.GetLeases()
	if other.GetState() > d.GetState() {
		d.State, d.Cordon, d.Quarantine = other.GetState(), other.GetCordon(), other.GetQuarantine()
	}
}
