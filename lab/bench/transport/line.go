package main

import (
	"container/list"
	"sync"
	"time"
)

// line is where agents of a kind wait for work, and work for them. Who waits longest is served first.
type line struct {
	mu      sync.Mutex
	work    list.List // of string
	waiting list.List // of *asker
}

// asker waits for work. It holds no goroutine.
type asker struct {
	answer func(work string)
	expiry *time.Timer
}

// ask has answer called once: with work, or with "" when none came in time.
func (l *line) ask(wait time.Duration, answer func(work string)) {
	l.mu.Lock()
	if first := l.work.Front(); first != nil {
		work := l.work.Remove(first).(string)
		l.mu.Unlock()
		answer(work)
		return
	}
	a := &asker{answer: answer}
	place := l.waiting.PushBack(a)
	a.expiry = time.AfterFunc(wait, func() { l.expire(place) })
	l.mu.Unlock()
}

// expire sends an asker away, unless it has its work.
func (l *line) expire(place *list.Element) {
	a := place.Value.(*asker)
	l.mu.Lock()
	late := a.answer == nil
	answer := a.answer
	if !late {
		l.waiting.Remove(place)
	}
	l.mu.Unlock()
	if !late {
		answer("")
	}
}

// put hands in work.
func (l *line) put(work string) {
	l.mu.Lock()
	first := l.waiting.Front()
	if first == nil {
		l.work.PushBack(work)
		l.mu.Unlock()
		return
	}
	a := l.waiting.Remove(first).(*asker)
	answer := a.answer
	a.answer = nil
	l.mu.Unlock()
	a.expiry.Stop()
	answer(work)
}
