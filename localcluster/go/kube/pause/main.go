// The process that holds a pod's namespaces open while its containers come and go.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	orphans := make(chan os.Signal, 16)
	end := make(chan os.Signal, 1)
	signal.Notify(orphans, syscall.SIGCHLD)
	signal.Notify(end, syscall.SIGINT, syscall.SIGTERM)
	for {
		select {
		case <-end:
			return
		case <-orphans:
			// As process 1 of a pod that shares its process namespace, it inherits processes whose parents died.
			for {
				if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); err != nil || pid <= 0 {
					break
				}
			}
		}
	}
}
