"""The API client, the object store fed by watches, server-side apply, the sweeper, the lease."""
