// A stand-in for NVIDIA's device plugin: it offers the kubelet GPUs that do not exist, by the same interface, so that
// the scheduler and the kubelet count them as they count real ones. No device ever appears in a container.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const (
	socketName = "fakegpu.sock"
	// A kubelet that starts refuses pods whose devices are not there yet, even those that ran before.
	interval = 20 * time.Millisecond
)

type plugin struct {
	api.UnimplementedDevicePluginServer
	devices []*api.Device
	server  *grpc.Server
}

func (p *plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

// ListAndWatch says once which devices there are; they never change and are never ill.
func (p *plugin) ListAndWatch(_ *api.Empty, stream grpc.ServerStreamingServer[api.ListAndWatchResponse]) error {
	if err := stream.Send(&api.ListAndWatchResponse{Devices: p.devices}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

func (p *plugin) Allocate(_ context.Context, request *api.AllocateRequest) (*api.AllocateResponse, error) {
	return &api.AllocateResponse{
		ContainerResponses: make([]*api.ContainerAllocateResponse, len(request.ContainerRequests)),
	}, nil
}

// offer serves the devices at the socket, in place of what served them before, and tells the kubelet.
func (p *plugin) offer(socket, resource string) error {
	if p.server != nil {
		p.server.Stop()
	}
	if err := os.Remove(socket); err != nil && !os.IsNotExist(err) {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	p.server = grpc.NewServer()
	api.RegisterDevicePluginServer(p.server, p)
	go func(server *grpc.Server) { _ = server.Serve(listener) }(p.server)
	return register(resource)
}

func register(resource string) error {
	connection, err := grpc.NewClient("unix://"+api.KubeletSocket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, err = api.NewRegistrationClient(connection).Register(ctx, &api.RegisterRequest{
		Version: api.Version, Endpoint: socketName, ResourceName: resource,
	})
	return err
}

func main() {
	resource := flag.String("resource", "nvidia.com/gpu", "name of the extended resource")
	count := flag.Int("count", 1, "how many devices to offer")
	flag.Parse()
	p := &plugin{}
	for i := range *count {
		p.devices = append(p.devices, &api.Device{ID: fmt.Sprintf("fake-%d", i), Health: api.Healthy})
	}
	socket := filepath.Join(api.DevicePluginPath, socketName)
	registered, said := false, ""
	for ; ; time.Sleep(interval) {
		// A kubelet that starts forgets its plugins and empties their folder: the lost socket says so.
		if !exists(api.KubeletSocket) || (registered && exists(socket)) {
			continue
		}
		err := p.offer(socket, *resource)
		registered = err == nil
		message := fmt.Sprintf("registered %d %s", *count, *resource)
		if err != nil {
			message = fmt.Sprintf("not registered yet: %v", err)
		}
		if message != said || registered {
			log.Print(message)
		}
		said = message
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
