package loadtest

import (
	"maps"
	"sync"
)

// ledger records what the tracker acknowledged: jobs, proposed candidates and recorded trials, each once.
type ledger struct {
	mu      sync.Mutex
	tasks   int                 // of every job
	jobs    map[string]*account // by job id
	results map[string]int      // by the address of the tracker that acknowledged them
}

// account is a job's part of the ledger, by task.
type account struct{ proposed, recorded []bitmap }

func newLedger(tasks int) *ledger {
	return &ledger{tasks: tasks, jobs: map[string]*account{}, results: map[string]int{}}
}

// job notes an acknowledged job.
func (l *ledger) job(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.account(id)
}

// account returns a job's account. The caller holds the lock.
func (l *ledger) account(id string) *account {
	a := l.jobs[id]
	if a == nil {
		a = newAccount(l.tasks)
		l.jobs[id] = a
	}
	return a
}

func newAccount(tasks int) *account {
	return &account{proposed: make([]bitmap, tasks), recorded: make([]bitmap, tasks)}
}

// propose notes n acknowledged candidates of a task, starting with trial first.
func (l *ledger) propose(job string, task int, first uint32, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.account(job)
	for i := range n {
		a.proposed[task].set(first + uint32(i))
	}
}

// record notes trials of a task that the tracker at an address acknowledged.
func (l *ledger) record(job string, task int, trials []uint32, by string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.account(job)
	for _, t := range trials {
		if a.recorded[task].set(t) {
			l.results[by]++
		}
	}
}

// acknowledged returns the number of trials that each tracker acknowledged, by address.
func (l *ledger) acknowledged() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.results)
}

// bitmap is a set of small numbers.
type bitmap []uint64

// set adds a number and reports whether it is new.
func (b *bitmap) set(n uint32) bool {
	for int(n/64) >= len(*b) {
		*b = append(*b, 0)
	}
	word, bit := &(*b)[n/64], uint64(1)<<(n%64)
	isNew := *word&bit == 0
	*word |= bit
	return isNew
}

// without returns how many numbers of b are not in other.
func (b bitmap) without(other bitmap) (n int) {
	for i, word := range b {
		if i < len(other) {
			word &^= other[i]
		}
		for ; word != 0; word &= word - 1 {
			n++
		}
	}
	return n
}
