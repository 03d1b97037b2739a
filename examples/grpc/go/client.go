// Asks a sixhop suite one question: first for the whole answer, then for the run as it happens.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	gateway "example.com/client/sixhop/gateway/v1"
	types "example.com/client/sixhop/type/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

const deadline = 10 * time.Second

// withDeadline returns what every call takes: how long it may last, and who asks.
func withDeadline() (context.Context, context.CancelFunc) {
	ctx := context.Background()
	if key := os.Getenv("SIXHOP_API_KEY"); key != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+key)
	}
	return context.WithTimeout(ctx, deadline)
}

func degraded(part *types.Degraded) {
	fmt.Printf("degraded: %s by %s: %s\n", part.Part, part.Mechanism, part.Reason)
}

// ask prints the whole answer at once.
func ask(client gateway.GatewayServiceClient, question *types.Question) error {
	ctx, cancel := withDeadline()
	defer cancel()
	answer, err := client.Ask(ctx, &gateway.AskRequest{Question: question})
	if err != nil {
		return err
	}
	fmt.Println(answer.Text)
	for _, part := range answer.Degradations {
		degraded(part)
	}
	return nil
}

// run prints what happens while the answer is made.
func run(client gateway.GatewayServiceClient, question *types.Question) error {
	ctx, cancel := withDeadline()
	defer cancel() // ends the run in every hop when we leave early
	stream, err := client.Run(ctx, &gateway.RunRequest{Question: question})
	if err != nil {
		return err
	}
	for {
		response, err := stream.Recv()
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		switch event := response.Event.Event.(type) { // none of these for an event of a later release
		case *types.RunEvent_TextDelta:
			fmt.Print(event.TextDelta.Text)
		case *types.RunEvent_Restarted:
			fmt.Println("\nthe text so far is void:", event.Restarted.Reason)
		case *types.RunEvent_Degraded:
			degraded(event.Degraded)
		case *types.RunEvent_Finished:
			fmt.Printf("\nfinished: %s, written by %s\n", event.Finished.Agent, event.Finished.Model)
		}
	}
}

// failure says why a call failed, at which hop, and how much time was left.
func failure(err error) string {
	told := status.Convert(err)
	reason, hop, left := told.Code().String(), "none", "unknown"
	for _, detail := range told.Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			reason, hop, left = info.Reason, info.Metadata["hop"], info.Metadata["remainingMs"]
			if origin := info.Metadata["originHop"]; origin != "" {
				hop = origin
			}
		}
	}
	return fmt.Sprintf("failed: %s, hop %s, remainingMs %s: %s", reason, hop, left, told.Message())
}

func main() {
	address := os.Getenv("SIXHOP_ADDRESS")
	if address == "" {
		address = "127.0.0.1:7400"
	}
	channel, err := grpc.Dial(address, grpc.WithInsecure())
	if err != nil {
		log.Fatal(err)
	}
	defer channel.Close()
	client, question := gateway.NewGatewayServiceClient(channel), &types.Question{Text: os.Args[1]}
	// A call that fails keeps nobody from the next one.
	for _, call := range []func(gateway.GatewayServiceClient, *types.Question) error{ask, run} {
		if err := call(client, question); err != nil {
			fmt.Println(failure(err))
		}
	}
}
