# Two images:
#   docker build --target serving  -t REGISTRY/gemmaserve-vllm:TAG .      any vLLM image + the parser, tested here
#   docker build --target operator -t REGISTRY/gemmaserve-operator:TAG .  the operator
#
# VLLM_IMAGE     the vLLM image to serve with; set VLLM_VERSION to its version
# PYTHON_IMAGE   a small Debian with python3 and its venv module: builds the wheels and carries the operator
# PIP_INDEX_URL, PIP_CERT   a package index and a certificate bundle other than pip's own (mount the bundle)
ARG VLLM_IMAGE=vllm/vllm-openai:v0.32.0
ARG PYTHON_IMAGE=python:3.11-slim-bookworm


FROM ${PYTHON_IMAGE} AS build
ARG PIP_INDEX_URL
ARG PIP_CERT
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /source
COPY requirements/build.txt requirements/build.txt
RUN python3 -m venv /build \
    && /build/bin/pip install --quiet --require-hashes -r requirements/build.txt \
    && /build/bin/pip download --quiet --no-deps --only-binary :all: --require-hashes -r requirements/build.txt -d /build/wheels


FROM build AS parser-wheel
COPY parser_patch parser_patch
RUN mkdir /wheels && cp /build/wheels/pip-*.whl /wheels/ \
    && /build/bin/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir /wheels ./parser_patch


FROM ${VLLM_IMAGE} AS serving
ARG VLLM_VERSION=0.32.0
ARG PARSER_VERSION=0.1.0
LABEL org.opencontainers.image.title="vLLM with GemmaServe's tool-call parser" \
      org.opencontainers.image.version="${PARSER_VERSION}" \
      dev.gemmaserve.parser.version="${PARSER_VERSION}" \
      dev.gemmaserve.vllm.version="${VLLM_VERSION}"
USER 0
COPY --from=parser-wheel /wheels /tmp/wheels
# Into the environment that vLLM itself runs in, whether or not the base has a pip of its own. Nothing of the base
# changes: the parser has no dependencies.
RUN PYTHONPATH=$(echo /tmp/wheels/pip-*.whl) python3 -m pip install --quiet --no-index --no-deps --no-cache-dir --break-system-packages \
        --root-user-action=ignore /tmp/wheels/gemmaserve_parser-*.whl \
    && rm -r /tmp/wheels \
    && (id -u 2000 > /dev/null 2>&1 || echo "vllm:x:2000:0:vLLM:/home/vllm:/usr/sbin/nologin" >> /etc/passwd) \
    && install -d -o 2000 -g 0 -m 0775 /home/vllm /home/vllm/.cache
ENV HOME=/home/vllm
USER 2000
# The gate's own check, here as the user that will serve: it fails where a regression fails, and where the base image's
# vLLM no longer loads the parser. Then the labels above are held against what is really installed.
RUN gemmaserve-parser regressions --report /tmp/regressions.json \
    && for wanted in "\"vllmVersion\": *\"${VLLM_VERSION}" "\"parserVersion\": *\"${PARSER_VERSION}"; do \
         grep -q "$wanted" /tmp/regressions.json \
         || { echo "this image is not $wanted: set the build arguments VLLM_VERSION and PARSER_VERSION to what it is"; \
              cat /tmp/regressions.json; exit 1; }; \
       done \
    && rm /tmp/regressions.json
# The live gate and the drain run in this image, too. toolstream's libraries come with vLLM.
RUN gemmaserve-parser drain --help > /dev/null && toolstream check --help > /dev/null \
    || { echo "this base image lacks one of aiohttp, typer and rich, which the live gate (toolstream) needs: add it"; exit 1; }
WORKDIR /home/vllm
EXPOSE 8000
ENTRYPOINT ["vllm", "serve"]
CMD []


FROM build AS operator-environment
COPY operator/requirements.txt operator/requirements.txt
RUN python3 -m venv /opt/gemmaserve \
    && /opt/gemmaserve/bin/pip install --quiet --require-hashes -r operator/requirements.txt
COPY operator operator
RUN mkdir /wheels && /build/bin/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir /wheels ./operator \
    && /opt/gemmaserve/bin/pip install --quiet --no-index --no-deps /wheels/*.whl \
    && /opt/gemmaserve/bin/pip uninstall --quiet --yes pip setuptools \
    && /opt/gemmaserve/bin/gemmaserve-operator --help > /dev/null


FROM ${PYTHON_IMAGE} AS operator
LABEL org.opencontainers.image.title="GemmaServe operator"
COPY --from=operator-environment /opt/gemmaserve /opt/gemmaserve
ENV PATH=/opt/gemmaserve/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1
USER 65532
WORKDIR /
EXPOSE 8080 8081
ENTRYPOINT ["gemmaserve-operator"]
CMD ["run"]
