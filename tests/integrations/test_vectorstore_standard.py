"""LangChain's own suite for vector stores, on both storage engines and both rankings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from langchain_core.vectorstores import VectorStore
from langchain_tests.integration_tests import VectorStoreIntegrationTests

from wellworn import Memory
from wellworn.integrations.vectorstore import WellwornVectorStore


class TestInMemory(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self) -> VectorStore:
        return WellwornVectorStore(embedding=self.get_embeddings())


class TestOnAFile(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self, tmp_path: Path) -> Iterator[VectorStore]:
        with Memory.open(tmp_path / "memory.db", embedder=self.get_embeddings()) as memory:
            yield WellwornVectorStore(memory, ranking="similarity")
