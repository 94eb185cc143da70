package coordinator

import (
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker/state"
)

// followRemote logs when the store's server goes away and returns.
func (e *Coordinator) followRemote() {
	remote, ok := e.store.(records.Remote)
	if !ok {
		return
	}
	e.remote = remote
	remote.OnFailed(e.fail) // sooner than the next commit
	remote.OnAway(func(why error) {
		if why != nil {
			e.log.Error("database unavailable; rejecting writes", "error", why)
		} else {
			e.log.Info("the database is back")
		}
	})
}

// away reports whether the store's server is unavailable. No change may be made then, since memory would only run
// further ahead. Earlier commits wait.
func (e *Coordinator) away() bool { return e.remote != nil && e.remote.Away() != nil }

// refuseAway refuses a call while the store's server is unavailable. Only the log names the server and the cause.
func (e *Coordinator) refuseAway() error {
	if e.away() {
		return state.Refuse(state.StoreAway, "%v: try again later", records.ErrAway)
	}
	return nil
}
