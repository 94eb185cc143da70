package engine

import (
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker/refusal"
)

// followRemote has the log tell of a store's server when that goes away, and when it is back.
func (e *Engine) followRemote() {
	remote, ok := e.store.(records.Remote)
	if !ok {
		return
	}
	e.remote = remote
	remote.OnFailed(e.fail) // sooner than the next commit would tell
	remote.OnAway(func(why error) {
		if why != nil {
			e.log.Error("nothing can be written, calls are refused until the database is back", "error", why)
		} else {
			e.log.Info("the database is back")
		}
	})
}

// away says whether the store's server is away. Nothing is changed then: memory would only run ahead of the store.
// What was handed in before waits.
func (e *Engine) away() bool { return e.remote != nil && e.remote.Away() != nil }

// refuseAway refuses a call while the store's server is away. The log says which server, and why.
func (e *Engine) refuseAway() error {
	if e.away() {
		return refusal.New(refusal.StoreAway, "%v: try again later", records.ErrAway)
	}
	return nil
}
