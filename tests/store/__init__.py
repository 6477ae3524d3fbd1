"""The store on real files: its tick, its plans, its failures, its recovery."""
