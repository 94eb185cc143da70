package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/bolt"
)

func TestConvertedBackupHonoursNoSession(t *testing.T) {
	joined := &tilthv1.Agent{Spec: &tilthv1.AgentSpec{Name: "board"}, Session: "s", State: tilthv1.AgentState_AGENT_STATE_IDLE}
	for _, marked := range []bool{false, true} {
		from, to := newPlace(t, "bolt", t.TempDir()), newPlace(t, "postgres", t.TempDir())
		from.use(t, func(s records.Store) error {
			w := &records.Write{}
			w.PutAgent(joined)
			return s.Commit(w).Wait(t.Context())
		})
		want := joined.GetState()
		if marked {
			want = tilthv1.AgentState_AGENT_STATE_GONE
			if err := bolt.MarkCopy(from.path, time.Unix(1, 0)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := convert(t.Context(), t, from, to, nil); err != nil {
			t.Fatal(err)
		}
		to.use(t, func(s records.Store) error {
			return s.Agents(func(a *tilthv1.Agent) {
				if a.GetState() != want || a.GetSession() != "s" {
					t.Errorf("a backup: %v, the agent is %v", marked, a)
				}
			})
		})
	}
}

func TestConversionEndsWithItsContext(t *testing.T) {
	both(t, func(t *testing.T, from, to place) {
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("ctrl-C")
		_, err := convert(ctx, t, from, to, func(a records.Stopped, b records.Target) (records.Stopped, records.Target) {
			return a, meddling{b, func(kind records.RowKind, rows []records.Row) []records.Row {
				if kind == records.RowRecord {
					cancel(why)
				}
				return rows
			}}
		})
		refuses(t, err, why)
		if _, err := convert(t.Context(), t, from, to, nil); err != nil {
			t.Fatal(err)
		}
	})
}
