package container

import (
	"io"
	"net"
)

// Publish hands connections to an address of the machine on to a container, until listener is closed.
func Publish(machine *Namespace, at, to string) (listener net.Listener, err error) {
	err = machine.Do(func() (err error) {
		listener, err = net.Listen("tcp", at)
		return err
	})
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			caller, err := listener.Accept()
			if err != nil {
				return
			}
			go handOn(machine, caller, to)
		}
	}()
	return listener, nil
}

func handOn(machine *Namespace, caller net.Conn, to string) {
	defer caller.Close()
	var service net.Conn
	err := machine.Do(func() (err error) {
		service, err = net.Dial("tcp", to)
		return err
	})
	if err != nil {
		return
	}
	defer service.Close()
	done := make(chan struct{}, 2)
	pipe := func(into, from net.Conn) {
		_, _ = io.Copy(into, from)
		_ = into.(*net.TCPConn).CloseWrite()
		done <- struct{}{}
	}
	go pipe(service, caller)
	go pipe(caller, service)
	<-done
	<-done
}
